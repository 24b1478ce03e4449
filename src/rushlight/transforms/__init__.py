"""Interpreters over the records: forward mode (`dual`, `tangents`) and vmap (`batched`, `batching`)."""
