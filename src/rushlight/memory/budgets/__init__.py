"""A bound in bytes on what arrays take: the pager and what it pages."""
