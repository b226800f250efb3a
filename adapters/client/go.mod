module github.com/healthlab-dev/healthlab/adapters/client

go 1.26.0
