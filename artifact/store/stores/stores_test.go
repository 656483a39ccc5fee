package stores_test

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestURLs(t *testing.T) {
	for _, good := range []string{
		"file:///srv/store",
		"file:///srv/with%20space",
		"file://localhost/srv/store",
		"s3://bucket",
		"s3://bucket/",
		"s3://bucket/a/prefix/?region=eu-west-1&profile=deploy",
		"s3://bucket/prefix?endpoint=https://s3.example.com:9000&path-style=0",
		"minio://localhost:9000/bucket?tls=0",
		"minio://s3.example.com/bucket/a/b?region=here",
		"https://mirror.example.com",
		"https://mirror.example.com/some/path/",
		"http://127.0.0.1:8080/x",
		"http://[::1]:8080/x",
		"http://localhost/x",
		"http://mirror.example.com/x?insecure=1",
		"S3://bucket",
	} {
		if err := check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, c := range []struct{ url, message, hint string }{
		{"", "not the URL", "file:///dir"},
		{"/srv/store", "not the URL", "file:///srv/store"},
		{"bucket/prefix", "not the URL", "s3://bucket"},
		{"s4://bucket", `"s4"`, `did you mean "s3"?`},
		{"mino://host/bucket", `"mino"`, `did you mean "minio"?`},
		{"ftp://x/y", `"ftp"`, "there are: file, s3"},
		{"sftp://x/y", `"sftp"`, "there are: file, s3"},
		{"gopher://x/y", `"gopher"`, "there are: file, s3"},
		{"file://srv/store", `"srv"`, "file:///srv/store"},
		{"file:///", "missing", "file:///srv/store"},
		{"file:///x?region=a", `"region"`, "no options"},
		{"s3:///prefix", "bucket is missing", "s3://bucket"},
		{"s3://host:9000/bucket", "bucket is missing", "?endpoint="},
		{"s3://bucket?regoin=x", `"regoin"`, `did you mean "region"?`},
		{"s3://bucket?region=", "one value", ""},
		{"s3://bucket?region=a&region=b", "one value", ""},
		{"s3://bucket?path-style=maybe", "0 or 1", ""},
		{"s3://bucket?endpoint=localhost:9000", "endpoint", "https://host:port"},
		{"s3://bucket/a//b", "key", "slash"},
		{"s3://bucket/../b", "key", "slash"},
		{"s3://bucket#x", "#", "%23"},
		{"minio://host:9000", "bucket is missing", "minio://host:port/bucket"},
		{"minio:///bucket", "host", "minio://host:port/bucket"},
		{"minio://host:port/bucket", "not a URL", "number"},
		{"https:///x", "host is missing", "https://host"},
		{"http://mirror.example.com/x", "plain HTTP", "?insecure=1"},
		{"https://mirror.example.com/%zz", "not a URL", "%25"},
	} {
		err := check(c.url)
		if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(diag.HintOf(err), c.hint) {
			t.Errorf("%s: %v, hint %q, want %q and %q", c.url, err, diag.HintOf(err), c.message, c.hint)
		}
	}
}

var secretURLs = []string{
	"s3://AKIA:s3cr3t@bucket/x",
	"https://user:s3cr3t@host/x",
	"https://s3cr3t@host/x",
	"https://user:s3cr3t/more@host/x",
	"https://user:s3cr3t",
	"https://user:s3cr3t%zz@host",
	"user:s3cr3t@host",
	"user@s3cr3t:host",
	"https://host/x?token=s3cr3t",
	"s3://bucket?secret-key=s3cr3t",
	"s3://bucket?endpoint=https://user:s3cr3t@host",
	"s3://bucket?endpoint=https%3A%2F%2Fuser%3As3cr3t%40host",
	"s3cr3t://x:s3cr3t@y",
	"https://host/#s3cr3t",
	"ftp://u:s3cr3t@h/",
}

func TestSecretsAreNotShown(t *testing.T) {
	for _, u := range secretURLs {
		err := check(u)
		if err == nil {
			t.Errorf("%s was accepted", u)
			continue
		}
		shown := stores.Display(u) + err.Error() + diag.HintOf(err)
		if strings.Contains(strings.ReplaceAll(shown, "s3cr3t://", ""), "s3cr3t") && !strings.HasPrefix(u, "s3cr3t:") {
			t.Errorf("%s: the text has the secret: %s", u, shown)
		}
	}
	for _, u := range []string{"file:///srv/a b", "s3://bucket/x?region=eu-west-1", "minio://h:9000/b?tls=0"} {
		if got := stores.Display(u); strings.ReplaceAll(got, "%20", " ") != u {
			t.Errorf("%s is shown as %s", u, got)
		}
	}
}

// TestOpenSendsNoRequest checks this because a store is opened before the command line is checked.
func TestOpenSendsNoRequest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, u := range []string{"file://" + dir, "s3://bucket", "minio://127.0.0.1:1/bucket", "https://store.invalid"} {
		if _, err := stores.Open(u, stores.Options{}); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was created")
	}
}

func TestOpenedStoresWork(t *testing.T) {
	server := fakes3.Start(t, nil)
	for _, u := range []string{
		"file://" + t.TempDir() + "/new/store",
		"s3://" + fakes3.Bucket + "/one/prefix?endpoint=http://" + server.Host,
		"minio://" + server.Host + "/" + fakes3.Bucket + "/another/prefix?tls=0",
	} {
		s, err := stores.Open(u, stores.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(store.Creating(t.Context()), "a/key", strings.NewReader(u), int64(len(u)),
			store.Condition{IfAbsent: true}); err != nil {
			t.Errorf("%s: Put: %v", u, err)
			continue
		}
		body, _, err := s.Get(t.Context(), "a/key", 0)
		if err != nil {
			t.Errorf("%s: Get: %v", u, err)
			continue
		}
		if got, err := io.ReadAll(body); string(got) != u || err != nil {
			t.Errorf("%s: %q, %v", u, got, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, u := range secretURLs {
		f.Add(u)
	}
	f.Add("s3://bucket/prefix?region=eu-west-1&path-style=1")
	f.Fuzz(func(_ *testing.T, u string) {
		_ = check(u)
		stores.Display(u)
	})
}

// check returns the error of opening a store's URL.
func check(rawURL string) error {
	_, err := stores.Open(rawURL, stores.Options{})
	return err
}
