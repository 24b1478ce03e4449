"""What would lower the peak of a recording, and by how much."""
