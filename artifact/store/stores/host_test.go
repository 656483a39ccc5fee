package stores_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

func TestHost(t *testing.T) {
	for address, want := range map[string]string{
		"https://mirror.example.com/corpus":          "mirror.example.com",
		"https://mirror.example.com:8443/other":      "mirror.example.com:8443",
		"minio://10.0.0.1:9000/bucket/prefix?tls=0":  "10.0.0.1:9000",
		"s3://bucket/prefix?endpoint=https://ceph:1": "ceph:1",
		"s3://bucket/prefix":                         "bucket",
		"file:///srv/store":                          "",
		"nothing":                                    "",
	} {
		if got := stores.Host(address); got != want {
			t.Errorf("the host of %s is %q, want %q", address, got, want)
		}
	}
}
