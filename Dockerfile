# The service in an image: tokens demanded, the data in a volume, run by nobody who may do more.
#
#   docker build -t aforesaid .
#   docker run -v aforesaid:/data aforesaid token new --user ada --scope user_id=ada     # prints a token, once
#   docker run -v aforesaid:/data -p 127.0.0.1:8787:8787 -p 127.0.0.1:8788:8788 -e AFORESAID_ALLOW_PLAINTEXT=true aforesaid
#
# docs/deploying.md tells of TLS, which AFORESAID_TLS_CERTIFICATE and AFORESAID_TLS_KEY switch on, in the stead of the last variable.
# AFORESAID_STORE puts the store into PostgreSQL, whose driver is in the lock; the volume then holds the secret and the index.
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY requirements.lock ./
# Every package with the hash that the lock names; a layer of its own, since the lock changes seldom.
RUN python3 -m venv /opt/aforesaid \
    && /opt/aforesaid/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY client client
COPY server server
RUN /opt/aforesaid/bin/python -m pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM ${BASE}
RUN groupadd --gid 10001 aforesaid \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin aforesaid \
    && install --directory --owner aforesaid --group aforesaid --mode 0700 /data
COPY --from=build /opt/aforesaid /opt/aforesaid
ENV PATH=/opt/aforesaid/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    AFORESAID_DATA=/data \
    AFORESAID_HOST=0.0.0.0 \
    AFORESAID_AUTH=token
USER 10001:10001
VOLUME /data
EXPOSE 8787 8788
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["aforesaid-server", "health"]
ENTRYPOINT ["aforesaid-server"]
CMD ["serve"]
