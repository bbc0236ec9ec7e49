"""Loopback stand-ins that tests share: no network, no wall-clock waits, no third-party data.

`scripted_server` plays a model and a judge behind the OpenAI chat API, `official_folder` writes
a folder in the layout of the official data, `loopback_hub` plays the Hugging Face Hub for one
data set. Nothing is imported here, so that a module can also be run with `python -m`.
"""
