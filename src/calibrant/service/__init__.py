"""``calibrant serve``: a run behind HTTP. The only room that imports fastapi, uvicorn and prometheus_client.

app       routes
schemas   what goes in and out
batcher   requests put together, answered by one thread
model     what answers: a classifier and how the service tells of it
reload    a run directory that is replaced
limits    how large and how slow a request may be
token     who may ask
metrics   what Prometheus reads; alarm: has the text moved?
logs      a JSON line for each request, without its texts
examples  texts to try on the page
page/     what people see, as plain files
server    listens, and ends without losing a request
"""
