"""The asyncio engine: order of work, limits, retries, and the pipeline predict → judge."""
