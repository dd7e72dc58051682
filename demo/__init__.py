"""A demonstration: real data published with and without hedging to a server with a long tail."""
