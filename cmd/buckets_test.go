//go:build integration

package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// rolePolicy is a policy in docs/buckets.md.
var rolePolicy = regexp.MustCompile("(?s)```json ([a-z-]+)\n(.*?)```")

// Each role of docs/buckets.md does its commands on a real server with the policy that is documented,
// and nothing else.
func TestBucketPolicies(t *testing.T) {
	text, err := os.ReadFile("../docs/buckets.md")
	if err != nil {
		t.Fatal(err)
	}
	server := minioserver.New(t)
	roles := map[string]credentials.Value{}
	for _, m := range rolePolicy.FindAllStringSubmatch(string(text), -1) {
		policy := strings.NewReplacer("BUCKET", minioserver.Bucket, "PREFIX", "line", "PROJECT", "myapp", "HOST", "myapp-testing-useast1-898900").Replace(m[2])
		provider, err := credentials.NewSTSAssumeRole("http://"+server.Host, credentials.STSAssumeRoleOptions{
			AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Policy: policy, Location: "us-east-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		if roles[m[1]], err = provider.GetWithContext(nil); err != nil {
			t.Fatalf("taking the role %s: %v", m[1], err)
		}
	}
	r := newReader(t)
	r.store = server.S3URL("line")
	as := func(role string) {
		value, ok := roles[role]
		if !ok {
			t.Fatalf("docs/buckets.md has no policy %q", role)
		}
		r.env = append(r.env, "AWS_ACCESS_KEY_ID="+value.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+value.SecretAccessKey, "AWS_SESSION_TOKEN="+value.SessionToken)
		t.Setenv("AWS_ACCESS_KEY_ID", value.AccessKeyID)
		t.Setenv("AWS_SECRET_ACCESS_KEY", value.SecretAccessKey)
		t.Setenv("AWS_SESSION_TOKEN", value.SessionToken)
	}
	large(t, filepath.Join(r.dir, "myapp", "noise"))

	as("promoter")
	r.must("corpus keys new", "corpus store init", "corpus refresh", "corpus root show")
	may(t, r.store, "promoter", "metadata/probe", "deploy/myapp/probe reports/myapp/h/probe")
	as("publisher")
	r.must("corpus build ./base -o base.tar.zst", "corpus publish base 1.0 base.tar.zst --channel production",
		"corpus build ./myapp -o myapp-1.0.tar.zst", "corpus publish myapp 1.0 myapp-1.0.tar.zst --channel testing", "corpus verify")
	orphan := "deploy/myapp/" + strings.Repeat("0", 64) + ".0.tar.zst"
	may(t, r.store, "publisher", "deploy/myapp/probe "+orphan, "reports/myapp/h/probe")
	as("promoter")
	r.must("corpus promote myapp testing production", "corpus yank myapp 1.0 --reason x", "corpus yank myapp 1.0 --undo", "corpus refresh")
	as("gc")
	if out := r.must("corpus gc", "corpus gc --grace 0s"); !strings.Contains(out, "removed 0 packs and 1 other objects") {
		t.Errorf("gc says %s", out)
	}
	may(t, r.store, "gc", "", "metadata/probe deploy/myapp/probe")
	as("host")
	r.must("CORPUS_REPORTS_UPLOAD=false corpus-agent deploy --trust-root root.json", "corpus ls", "corpus verify")
	may(t, r.store, "host", "", "metadata/probe deploy/myapp/probe reports/myapp/myapp-testing-useast1-898900/probe")
	as("host-reports")
	r.must("corpus-agent deploy")
	may(t, r.store, "host-reports", "reports/myapp/myapp-testing-useast1-898900/probe", "metadata/probe deploy/myapp/probe reports/myapp/other/probe")
}

// large writes a file that goes up in parts, and in chunks.
func large(t *testing.T, file string) {
	t.Helper()
	if out, err := exec.Command("dd", "if=/dev/urandom", "of="+file, "bs=1M", "count=12").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// may holds a role to the keys that it may write, and must not; no role but gc deletes.
func may(t *testing.T, url, role, write, never string) {
	t.Helper()
	s, err := stores.Open(url, stores.Options{Retry: store.RetryPolicy{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) error {
		_, err := s.Put(context.Background(), key, bytes.NewReader([]byte("x")), 1, store.Condition{})
		return err
	}
	for _, key := range strings.Fields(write) {
		if err := put(key); err != nil {
			t.Errorf("%s may not write %s: %v", role, key, err)
		}
	}
	for _, key := range strings.Fields(never) {
		if err := put(key); !errors.Is(err, store.ErrForbidden) {
			t.Errorf("%s writes %s: %v", role, key, err)
		}
	}
	if err := s.Delete(context.Background(), "metadata/timestamp.json.no"); role != "gc" && !errors.Is(err, store.ErrForbidden) {
		t.Errorf("%s deletes: %v", role, err)
	}
	body, _, err := s.Get(context.Background(), "metadata/timestamp.json", 0)
	if err != nil {
		t.Errorf("%s cannot read: %v", role, err)
		return
	}
	_, _ = io.Copy(io.Discard, body)
	_ = body.Close()
}
