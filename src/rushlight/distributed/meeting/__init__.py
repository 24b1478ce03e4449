"""How processes that were started one by one find each other: values by key that all of them see, and a group made by these."""
