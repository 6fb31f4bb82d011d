"""The processes of a program that MPI started, and the messages between them."""
