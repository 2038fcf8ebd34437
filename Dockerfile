# nearsim with the numba back end. Arguments are those of the command: docker run nearsim worker
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY nearsim_db nearsim_db
COPY migrations migrations
RUN pip install --no-cache-dir '.[fast]' \
    && rm -r /src \
    && useradd --create-home nearsim
USER nearsim
WORKDIR /home/nearsim
ENTRYPOINT ["nearsim"]
CMD ["--help"]
