//go:build integration

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// TestPublishToConvergeAgainstMinIO deploys a service from an empty bucket, through an upgrade, a broken version and a
// promotion, with the commands of users and each of the two S3 clients.
func TestPublishToConvergeAgainstMinIO(t *testing.T) {
	server := minioserver.New(t)
	for name, store := range map[string]string{"minio": server.MinioURL("line"), "s3": server.S3URL("line-s3")} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t)
			r.store = store
			r.prepare()
			r.must("corpus-agent deploy")
			conf := filepath.Join(r.dir, "root/etc/myapp/myapp.conf")
			good, err := os.ReadFile(conf)
			if err != nil {
				t.Fatal(err)
			}
			r.must("cp -r next broken && chmod -R u+w broken && printf '/etc/broken:\\n  file.managed:\\n    - source: "+
				"/absent\\n' >>broken/salt/config/states/myapp/init.sls",
				"corpus build ./broken -o myapp-1.2.tar.zst", "corpus publish myapp 1.2 myapp-1.2.tar.zst --channel testing")
			if out, err := r.run("corpus-agent deploy"); err == nil ||
				!strings.Contains(out, "rolled back to: base 1.0, myapp 1.1") {
				t.Errorf("the broken version: %v\n%s", err, out)
			}
			if after, err := os.ReadFile(conf); err != nil || string(after) != string(good) {
				t.Errorf("after the rollback the configuration is %q, %v", after, err)
			}
			r.must("corpus promote myapp testing production")
			if out := r.must("corpus ls"); !strings.Contains(out, "myapp/production  1.2") {
				t.Errorf("after the promotion:\n%s", out)
			}
			if out := r.must("corpus verify"); !strings.Contains(out, "verified 4 artifacts") {
				t.Errorf("verify prints %s", out)
			}
			server.Stop()
			if out, err := r.run("corpus-agent deploy"); err == nil || !strings.Contains(out, "hint:") {
				t.Errorf("without the store: %v\n%s", err, out)
			}
			server.Start(t)
			r.must("corpus-agent deploy")
		})
	}
}
