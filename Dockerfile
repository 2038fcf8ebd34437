# nearsim with the numba back end. Arguments are those of the command: docker run nearsim worker
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY nearsim_db nearsim_db
COPY migrations migrations
# The version is that of the copied source.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir '.[fast]' \
    && rm -r /src \
    && useradd --uid 10001 --create-home nearsim
USER 10001
WORKDIR /home/nearsim
ENTRYPOINT ["nearsim"]
CMD ["--help"]
