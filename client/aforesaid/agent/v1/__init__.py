"""Version 1 of the contract: messages (`*_pb.py`) and clients and servers of the services (`*_connect.py`)."""
