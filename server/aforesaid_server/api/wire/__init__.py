"""What every gRPC server speaks beside its own contract, which lies in `aforesaid`: health, and the details of errors.

The .proto files stand beside the Python that is generated from them, because no package ships it for our protobuf runtime. They
hold only the messages that this service sends. tests/api/test_wire.py proves that the Python is what they say, and writes it anew
with `AFORESAID_WRITE=1`.
"""
