"""What datapipes are made with: files, decoders of files, and snapshots."""
