//go:build integration

package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// rolePolicy matches a policy in docs/buckets.md.
var rolePolicy = regexp.MustCompile("(?s)```json ([a-z-]+)\n(.*?)```")

// TestBucketPolicies runs the commands of each role in docs/buckets.md on a real server with the documented policy, and
// checks that the policy allows nothing else.
func TestBucketPolicies(t *testing.T) {
	text, err := os.ReadFile("../docs/buckets.md")
	if err != nil {
		t.Fatal(err)
	}
	server := minioserver.New(t)
	roles := map[string]credentials.Value{}
	const second = "myapp-testing-useast1-2"
	documented := rolePolicy.FindAllStringSubmatch(string(text), -1)
	for i, m := range slices.Concat(documented, documented) {
		host, name := "myapp-testing-useast1-898900", m[1]
		if i >= len(documented) {
			host, name = second, m[1]+" of the second host"
		}
		policy := strings.NewReplacer("BUCKET", minioserver.Bucket, "PREFIX", "line", "PROJECT", "myapp", "CHANNEL",
			"production", "HOST", host).Replace(m[2])
		provider, err := credentials.NewSTSAssumeRole("http://"+server.Host, credentials.STSAssumeRoleOptions{
			AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Policy: policy,
			Location: "us-east-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 { // a server that has just started may not have its users yet
			if roles[name], err = provider.GetWithContext(nil); err == nil || !strings.Contains(err.Error(), "not initialized") {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("taking the role %s: %v", name, err)
		}
	}
	r := newReader(t)
	r.store = server.S3URL("line")
	as := func(role string) {
		value, ok := roles[role]
		if !ok {
			t.Fatalf("docs/buckets.md has no policy %q", role)
		}
		r.env = append(r.env, "AWS_ACCESS_KEY_ID="+value.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+value.SecretAccessKey,
			"AWS_SESSION_TOKEN="+value.SessionToken)
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
		"corpus build ./myapp -o myapp-1.0.tar.zst", "corpus publish myapp 1.0 myapp-1.0.tar.zst --channel testing",
		"corpus verify", "corpus doctor | grep '^ok *write *deploy/'")
	orphan := "deploy/myapp/" + strings.Repeat("0", 64) + ".0.tar.zst"
	may(t, r.store, "publisher", "deploy/myapp/probe "+orphan, "reports/myapp/h/probe")
	as("promoter")
	r.must("corpus promote myapp testing production", "corpus yank myapp 1.0 --reason x", "corpus yank myapp 1.0 --undo",
		"corpus refresh")
	left, elsewhere := begin(t, server, "line/deploy/myapp/large"), begin(t, server, "other/deploy/myapp/large")
	as("gc")
	if out := r.must("corpus gc"); !strings.Contains(out, "and 0 unfinished uploads") {
		t.Errorf("gc aborts an upload that has just begun: %s", out)
	}
	var due collect.Collected
	if out := r.must("corpus gc --grace 0s --dry-run --json"); json.Unmarshal([]byte(out), &due) != nil ||
		due.Packs != 0 || due.Objects.Removed != 1 || due.Uploads.Removed != 1 || !left() {
		t.Errorf("a dry run prints %s; the upload was aborted: %v", out, !left())
	}
	if out := r.must("corpus gc --grace 0s"); !strings.Contains(out, "removed 0 packs and ") ||
		!strings.Contains(out, "and 1 unfinished upload;") || left() {
		t.Errorf("gc prints %s; the unfinished upload remains: %v", out, left())
	}
	left = begin(t, server, "line/deploy/myapp/large")
	if out := r.must("corpus gc --grace 0s --store '" + server.MinioURL("line") + "'"); !strings.Contains(out,
		"and 1 unfinished upload;") || left() {
		t.Errorf("gc of a minio:// store prints %s; the unfinished upload remains: %v", out, left())
	}
	if !elsewhere() {
		t.Error("gc aborted an unfinished upload of another store in the bucket")
	}
	may(t, r.store, "gc", "", "metadata/probe deploy/myapp/probe")
	as("host")
	r.must("CORPUS_REPORTS_UPLOAD=false corpus-agent deploy --trust-root root.json", "corpus ls", "corpus verify",
		"CORPUS_REPORTS_UPLOAD=false corpus-agent doctor | grep '^ok *clock'")
	if out, err := r.run("corpus-agent doctor"); err == nil || !strings.Contains(out, "failed   write") {
		t.Errorf("doctor does not report that this host may not write its reports: %s", out)
	}
	may(t, r.store, "host", "", "metadata/probe deploy/myapp/probe reports/myapp/myapp-testing-useast1-898900/probe")
	as("host-reports")
	r.must("corpus-agent deploy")
	if out := r.must("corpus-agent doctor"); strings.Count(out, "can be written") != 3 {
		t.Errorf("doctor does not report that this host may write its reports: %s", out)
	}
	may(t, r.store, "host-reports",
		"reports/myapp/myapp-testing-useast1-898900/probe hosts/myapp-testing-useast1-898900/probe "+
			"fleet/myapp/myapp-testing-useast1-898900/probe",
		"metadata/probe deploy/myapp/probe reports/myapp/other/probe hosts/other/probe fleet/myapp/other/probe")
	r.must("corpus-agent converge")
	host := "rollouts/myapp/production/20261124t210000-0badcafe/"
	as("host-rollouts")
	may(t, r.store, "host-rollouts", host+"results/myapp-testing-useast1-898900/probe "+host+
		"halts/myapp-testing-useast1-898900/probe "+host+"leases/c/0.json",
		host+"results/other/probe "+host+"halts/other/probe "+
			host+"roster.json "+host+
			"summary.json metadata/probe rollouts/other/production/20261124t210000-0badcafe/leases/c/0.json "+
			host+"results/other/leases/0.json "+host+"results/other/results/myapp-testing-useast1-898900/x")
	// Two hosts try to write each other's objects.
	first := "myapp-testing-useast1-898900"
	mine := func(name string) string {
		return strings.ReplaceAll("reports/myapp/NAME/mine hosts/NAME/mine fleet/myapp/NAME/mine", "NAME", name)
	}
	resultName := func(name string) string {
		return strings.ReplaceAll(host+"results/NAME/mine "+host+"halts/NAME/mine", "NAME", name)
	}
	as("host-reports")
	may(t, r.store, "host-reports", mine(first), mine(second))
	as("host-reports of the second host")
	may(t, r.store, "host-reports of the second host", mine(second), mine(first))
	as("host-rollouts")
	may(t, r.store, "host-rollouts", resultName(first), resultName(second))
	as("host-rollouts of the second host")
	may(t, r.store, "host-rollouts of the second host", resultName(second), resultName(first))
	as("promoter")
	may(t, r.store, "promoter", host+"roster.json "+host+"summary.json", host+"results/h/probe "+host+"leases/c/0.json")
	as("promoter")
	r.must("corpus keys new attestation --keys keys", "corpus project add attestation --key keys/attestation.pub",
		"corpus project require myapp production --from testing")
	as("attester")
	r.must("corpus attest myapp testing --allow-other-root")
	may(t, r.store, "attester", "attestations/myapp/probe", "metadata/probe deploy/myapp/probe reports/myapp/h/probe "+
		host+"roster.json")
	as("promoter")
	r.must("corpus promote myapp testing production")
	may(t, r.store, "promoter", "", "attestations/myapp/probe")
	as("viewer")
	if out := r.must("corpus fleet --json"); strings.Count(out, `"host": "myapp-testing-useast1-898900"`) != 1 ||
		!strings.Contains(out, `"signed": true`) {
		t.Errorf("the fleet is %s", out)
	}
	r.must("corpus host show myapp-testing-useast1-898900")
	may(t, r.store, "viewer", "", "metadata/probe deploy/myapp/probe reports/myapp/h/probe fleet/myapp/h/probe "+
		"hosts/h/probe")
	as("promoter")
	if out := r.must("corpus host ls"); !strings.HasPrefix(out, "myapp-testing-useast1-898900 ") {
		t.Errorf("the host did not register its key: %s", out)
	}
}

// large writes a file that is uploaded in parts, and in chunks.
func large(t *testing.T, file string) {
	t.Helper()
	if out, err := exec.Command("dd", "if=/dev/urandom", "of="+file, "bs=1M", "count=12").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// may checks which keys a role may write, and which it must not; only gc may delete.
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
	if err := s.Delete(context.Background(), "metadata/timestamp.json.no"); role != "gc" &&
		!errors.Is(err, store.ErrForbidden) {
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

// begin begins an upload in parts with the server's own keys, as a publisher that is killed does. left reports whether
// the upload still exists.
func begin(t *testing.T, server *minioserver.Server, object string) (left func() bool) {
	t.Helper()
	api, err := minio.NewCore(server.Host, &minio.Options{
		Creds: credentials.NewStaticV4(os.Getenv("MINIO_ACCESS_KEY"), os.Getenv("MINIO_SECRET_KEY"), ""), Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := api.NewMultipartUpload(t.Context(), minioserver.Bucket, object, minio.PutObjectOptions{})
	if err == nil {
		_, err = api.PutObjectPart(t.Context(), minioserver.Bucket, object, id, 1, strings.NewReader("part"), 4,
			minio.PutObjectPartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() bool {
		_, err := api.ListObjectParts(t.Context(), minioserver.Bucket, object, id, 0, 10)
		if err != nil && minio.ToErrorResponse(err).Code != "NoSuchUpload" {
			t.Fatal(err)
		}
		return err == nil
	}
}
