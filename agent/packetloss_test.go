//go:build integration

package agent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// lossy is set in the environment of a child that runs in a network namespace.
const lossy = "CORPUS_TEST_LOSSY"

// TestDeployThroughPacketLoss deploys from a server while the kernel drops three of ten packets in each direction:
// connections stall and time out, as on a bad line.
func TestDeployThroughPacketLoss(t *testing.T) {
	if os.Getenv(lossy) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeployThroughPacketLoss$", "-test.v", "-test.timeout=10m")
		cmd.Env = append(os.Environ(), lossy+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("this test needs root: it makes a network namespace")
		}
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	nft := nftables(t)
	sh(t, "ip link set lo mtu 1500 up")
	server := minioserver.New(t)
	l := newLab(t)
	l.repo = artifacttest.On(t, openStore(t, server.MinioURL("loss"), nil))
	content := noise(1, 400<<10)
	release := l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "data": content})
	var fetched atomic.Int64
	l.store = openStore(t, server.MinioURL("loss"), func(r store.Request) {
		fetched.Add(r.Bytes)
		if r.Err != nil {
			t.Logf("%s %s: %v", r.Op, r.Key, r.Err)
		}
	})
	nft("add table inet loss; add chain inet loss in { type filter hook input priority 0; }; add rule inet loss in meta " +
		"l4proto tcp numgen random mod 100 < 30 counter drop")
	started := time.Now()
	l.expect(exit.OK)
	took := time.Since(started)
	if data, err := os.ReadFile(filepath.Join(l.Layout.Path("/srv/service/current"), "data")); err != nil ||
		string(data) != content {
		t.Errorf("%d bytes with other content than was published, %v", len(data), err)
	}
	const part = 8 << 20
	if most := release.Length + part; fetched.Load() > most {
		t.Errorf("fetched %d bytes of an artifact of %d, want %d at most", fetched.Load(), release.Length, most)
	}
	found := regexp.MustCompile(`packets (\d+)`).FindStringSubmatch(nft("list ruleset"))
	if found == nil {
		t.Fatal("the rule that drops packets does not exist")
	}
	lost, err := strconv.Atoi(found[1])
	if err != nil || lost < 8 {
		t.Errorf("%d packets were lost, %v; want dozens", lost, err)
	}
	t.Logf("%d bytes of an artifact of %d in %.1f s, with %d packets lost", fetched.Load(), release.Length, took.Seconds(),
		lost)
}

// nftables returns a function that runs nft; if the program is not installed, it is taken from Debian's package.
func nftables(t *testing.T) func(string) string {
	t.Helper()
	program, err := exec.LookPath("nft")
	env := os.Environ()
	if err != nil {
		dir := t.TempDir()
		sh(t, "cd "+dir+" && apt-get download -q nftables libnftables1 libnftnl11 libmnl0 libxtables12 libjansson4 "+
			"libgmp10 libedit2 libbsd0 libmd0 libtinfo6 && for f in *.deb; do dpkg-deb -x $f . || exit; done")
		program = filepath.Join(dir, "usr/sbin/nft")
		env = append(env, fmt.Sprintf("LD_LIBRARY_PATH=%s/usr/lib/x86_64-linux-gnu:%s/lib/x86_64-linux-gnu", dir, dir))
	}
	return func(rules string) string {
		t.Helper()
		cmd := exec.Command(program, "-f", "-")
		cmd.Env, cmd.Stdin = env, strings.NewReader(rules)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("nft %s: %v\n%s", rules, err, out)
		}
		return string(out)
	}
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
