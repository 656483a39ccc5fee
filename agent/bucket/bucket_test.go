//go:build integration

package bucket_test

import (
	"strings"
	"testing"

	minio "github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/corpus-agent/corpus-agent/agent/bucket"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const keyID, key = "corpus-test", "corpus-test-secret" // of every server

// upload puts objects into the bucket of a server.
func upload(t *testing.T, server *minioserver.Server, objects map[string]string) {
	t.Helper()
	client, err := minio.New(server.Host, &minio.Options{Creds: credentials.NewStaticV4(keyID, key, "")})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range objects {
		if _, err := client.PutObject(t.Context(), minioserver.Bucket, name, strings.NewReader(text), int64(len(text)),
			minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// pillarOf returns the pillar of a host whose only source is a bucket, and the secrets that the run removes from its
// output.
func pillarOf(t *testing.T, test bool, pairs ...any) (string, []string, error) {
	t.Helper()
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	secrets := &redact.Redactor{}
	s := state.SessionFor(state.Request{
		Host: h, Grains: value.NewMap("id", "web-01", "role", "web"), Redactor: secrets, Test: test,
		Buckets: bucket.Reader(store.Settings{Retry: store.RetryPolicy{Attempts: 1}}),
		Options: value.NewMap("ext_pillar", value.NewList(value.NewMap("s3", value.NewMap(pairs...)))),
	})
	t.Cleanup(s.Close)
	data, err := s.Pillar(t.Context())
	return value.Repr(data), secrets.Secrets(), err
}

// TestABucketGivesPillarData reads pillars of a real server: below a prefix, of an environment, and with credentials of
// the source and of the host.
func TestABucketGivesPillarData(t *testing.T) {
	server := minioserver.New(t)
	upload(t, server, map[string]string{
		"p/q/top.sls":  "base: {'role:web': [{match: grain}, a.b]}\n",
		"p/q/a/b.sls":  "{% import_yaml 'c.yaml' as c %}\nx: {{ c.x }}\nid: {{ grains.id }}\n",
		"p/q/c.yaml":   "x: 7\n",
		"p/q/folder/":  "",
		"p/qq/top.sls": "not: [valid",
		"prod/top.sls": "prod: {'*': [z]}\n", "prod/z.sls": "z: 1\n",
		"broken/top.sls": "base: {'*': [z]}\n", "broken/z.sls": "z: [1\n",
	})
	at := []any{"bucket", minioserver.Bucket, "service_url", server.Host, "https_enable", false}
	own := []any{"keyid", keyID, "key", key}
	with := func(lists ...[]any) (all []any) {
		for _, l := range append([][]any{at}, lists...) {
			all = append(all, l...)
		}
		return all
	}
	for _, c := range []struct {
		argument    []any
		want, fails string
	}{
		{with(own, []any{"prefix", "p/q", "s3_cache_expire", 30, "s3_sync_on_update", true}), "{'x': 7, 'id': 'web-01'}", ""},
		{with([]any{"prefix", "/p/q/"}), "{'x': 7, 'id': 'web-01'}", ""},
		{with(own, []any{"multiple_env", true, "environment", "prod"}), "{'z': 1}", ""},
		{with(own, []any{"prefix", "broken"}), "", "s3:corpus/broken/z.sls:1"},
		{with(own, []any{"prefix", "none"}), "", "no objects below s3://corpus/none"},
		{with([]any{"keyid", keyID, "key", "wrong-secret"}), "", "SignatureDoesNotMatch"},
		{with([]any{"keyid", keyID}), "", "only one of keyid and key"},
		{with([]any{"verify_ssl", false}), "", "verify_ssl cannot be turned off"},
		{with([]any{"prefx", "x"}), "", "no argument prefx"},
	} {
		for _, test := range []bool{false, true} {
			got, secrets, err := pillarOf(t, test, c.argument...)
			switch {
			case c.fails == "" && (err != nil || got != c.want):
				t.Errorf("%v: %v, hint %q: %s, want %s", c.argument, err, diag.HintOf(err), got, c.want)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) ||
				strings.Contains(err.Error(), "wrong-secret")):
				t.Errorf("%v: the error is %v, want %q", c.argument, err, c.fails)
			case len(c.argument) > 8 && c.argument[8] == "key" && len(secrets) != 1:
				t.Errorf("%v: %d secrets are removed from the output", c.argument, len(secrets))
			}
		}
	}
	server.Stop()
	if got, _, err := pillarOf(t, false, with(own)...); err == nil || !strings.Contains(err.Error(), "ext_pillar s3: ") {
		t.Errorf("without the server: %v: %s", err, got)
	}
}

// TestABucketHasALimit reads objects of eight bytes together.
func TestABucketHasALimit(t *testing.T) {
	server := minioserver.New(t)
	upload(t, server, map[string]string{"a": "1234", "b": "5678"})
	reader := bucket.Reader(store.Settings{Retry: store.RetryPolicy{Attempts: 1}})
	for limit, want := range map[int64]string{3: "", 7: "a", 8: "ab"} {
		got := ""
		err := reader.Objects(t.Context(), external.Bucket{Name: minioserver.Bucket,
			Endpoint: "http://" + server.Host}, limit,
			func(key string, _ []byte) error { got += key; return nil })
		if got != want || (limit < 8) != (err != nil) {
			t.Errorf("limit %d: %q, %v", limit, got, err)
		}
	}
}
