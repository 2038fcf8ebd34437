# nearsim with the numba back end. Arguments are those of the command: docker run nearsim worker
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY nearsim_db nearsim_db
COPY migrations migrations
# All but the copied source has a fixed version and a hash, which `make constraints` renews.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --require-hashes --requirement constraints.txt \
    && pip install --no-cache-dir --no-deps --no-build-isolation . \
    && rm -r /src \
    && useradd --uid 10001 --create-home nearsim
USER 10001
WORKDIR /home/nearsim
ENTRYPOINT ["nearsim"]
CMD ["--help"]
