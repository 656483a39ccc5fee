//go:build integration

package stores_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

func TestConformanceOnMinIO(t *testing.T) {
	server := minioserver.New(t)
	var tests atomic.Int32
	prefix := func() string { return fmt.Sprintf("test/%d", tests.Add(1)) }
	kinds := map[string]func(t *testing.T) store.Store{
		"s3": func(*testing.T) store.Store {
			return s3.New(s3.Options{Bucket: minioserver.Bucket, Prefix: prefix(), Endpoint: "http://" + server.Host})
		},
		"minio": func(*testing.T) store.Store {
			return minio.New(minio.Options{Host: server.Host, Bucket: minioserver.Bucket, Prefix: prefix(), Plain: true})
		},
		"stack": func(t *testing.T) store.Store {
			st, err := stores.Open(server.MinioURL(prefix()), stores.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return st
		},
	}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) { storetest.Run(t, open) })
	}
}
