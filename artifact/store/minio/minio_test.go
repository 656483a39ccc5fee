package minio_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		server := fakes3.Start(t, nil)
		return minio.New(minio.Options{Host: server.Host, Bucket: fakes3.Bucket, Prefix: "some/prefix", Plain: true})
	})
}
