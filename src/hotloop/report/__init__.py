"""Runs beside each other: python -m hotloop.report RUN [RUN …]"""
