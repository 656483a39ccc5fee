module github.com/corpus-agent/corpus-agent

go 1.26.8
