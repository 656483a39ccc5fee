package s3_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		server := fakes3.Start(t, nil)
		return s3.New(s3.Options{Bucket: fakes3.Bucket, Prefix: "some/prefix", Endpoint: "http://" + server.Host})
	})
}
