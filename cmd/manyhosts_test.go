//go:build integration

package cmd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// TestRolloutToManyHosts runs agents, each a process with its own root and name, which deploy releases in waves from a
// real server: one that fails on every host and reaches no host beyond the first wave, and one that fails on every
// twentieth host, which a limit of 10 % allows. Only the agents and the server run. A state fails, since agents with
// --root run no hooks. CORPUS_TEST_HOSTS is the number of hosts.
func TestRolloutToManyHosts(t *testing.T) {
	m := newManyHosts(t)
	m.everyone("the first deploy", exit.OK)
	m.r.must("corpus project rollout myapp production --agent 0 --waves 1%:1s,10%:1s,50%:1s,100% --halt-at 2,5%")
	m.failsEverywhere()
	m.r.must("corpus project rollout myapp production --halt-at 10%")
	m.failsOnAFew()
}

// manyHosts has hosts below one directory, and a bucket from which they deploy.
type manyHosts struct {
	t     *testing.T
	r     *reader
	names []string
	roots string // NAME below it is the root of a host

	mu   sync.Mutex
	went map[string]bool // hosts that rolled back from the version that was published last
}

func newManyHosts(t *testing.T) *manyHosts {
	t.Helper()
	many := 100
	if n, err := strconv.Atoi(os.Getenv("CORPUS_TEST_HOSTS")); err == nil {
		many = n
	}
	url := minioserver.New(t).MinioURL("many") // New sets the credentials in the environment
	m := &manyHosts{t: t, r: newReader(t), roots: inMemory(t)}
	m.r.store = url
	m.r.must("corpus keys new", "corpus store init")
	for i := range many {
		region := []string{"useast1", "uswest2", "euwest1", "apsouth1"}[i%4]
		name := fmt.Sprintf("myapp-production-%s-%d", region, i+1)
		m.names = append(m.names, name)
		m.write(filepath.Join(m.roots, name, "etc/hostname"), name+"\n", 0o644)
	}
	m.publish("1.0", "file.missing: [{name: /etc/nowhere}]")
	return m
}

// inMemory returns a directory in memory, if there is one.
func inMemory(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "corpus-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (m *manyHosts) write(file, text string, mode os.FileMode) {
	m.t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), mode)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// publish points the channel at a version with a state that may fail.
func (m *manyHosts) publish(version, state string) string {
	m.t.Helper()
	tree := filepath.Join(m.r.dir, "many-"+version)
	m.write(tree+"/corpus.yaml", "name: myapp\n", 0o644)
	m.write(tree+"/version", version, 0o644)
	m.write(tree+"/salt/config/states/top.sls", "base: {'*': [app]}\n", 0o644)
	m.write(tree+"/salt/config/states/app.sls", "/etc/myapp.conf:\n  file.managed:\n    - contents: '"+version+
		"'\nmay-fail:\n  "+state+"\n", 0o644)
	m.went = map[string]bool{}
	return m.r.must("corpus build "+tree+" -o "+version+".tar.zst", "corpus publish myapp "+version+" "+version+
		".tar.zst --channel production")
}

// everyone runs every host once, in order, some concurrently, and checks their exit codes.
func (m *manyHosts) everyone(what string, codes ...int) {
	m.t.Helper()
	started := time.Now()
	var failed atomic.Int64
	group := errgroup.Group{}
	group.SetLimit(12)
	for _, name := range m.names {
		group.Go(func() error {
			code, out := m.deploy(name)
			if code == exit.RolledBack {
				m.mu.Lock()
				m.went[name] = true
				m.mu.Unlock()
			}
			if !slices.Contains(codes, code) && failed.Add(1) < 5 {
				m.t.Errorf("%s: %s: exit code %d: %s", what, name, code, out)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are counted
	m.t.Logf("%s: %d runs in %.0f s, %d with another exit code than %v", what, len(m.names), time.Since(started).Seconds(),
		failed.Load(), codes)
}

func (m *manyHosts) deploy(name string) (code int, out string) {
	cmd := exec.Command(filepath.Join(bin(m.t), "corpus-agent"), "deploy")
	cmd.Dir, cmd.Env = m.r.dir, append(slices.Clip(m.r.env), "CORPUS_STORE="+m.r.store,
		"CORPUS_ROOT="+filepath.Join(m.roots, name), "CORPUS_TRUST_ROOT=root.json")
	output, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return exit.Internal, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(output)
}

// have returns the hosts that run a version.
func (m *manyHosts) have(version string) (names []string) {
	for _, name := range m.names {
		data, _ := os.ReadFile(filepath.Join(m.roots, name, "srv/service/current/version"))
		if string(data) == version {
			names = append(names, name)
		}
	}
	return names
}

// tried returns the number of hosts that deployed the latest version, including those that rolled back.
func (m *manyHosts) tried(version string) int { return len(m.went) + len(m.have(version)) }

// rolling has the fields of `corpus rollout status --json` that the test uses.
type rolling struct {
	State   string        `json:"state"`
	Rollout rollout.Start `json:"rollout"`
	Plan    rollout.Plan  `json:"plan"`
	Halts   []struct {
		Host string `json:"host"`
	} `json:"halts"`
}

func (m *manyHosts) status() (s rolling) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.r.must("corpus rollout status myapp production --json")), &s); err != nil {
		m.t.Fatal(err)
	}
	return s
}

func (m *manyHosts) failsEverywhere() {
	m.publish("2.0", "file.exists: [{name: /etc/nowhere}]")
	for i := range 3 {
		m.everyone(fmt.Sprintf("a release that fails everywhere, round %d", i+1), exit.OK, exit.RolledBack)
	}
	s := m.status()
	first, tried := s.Rollout.Hosts[0], m.tried("2.0")
	m.t.Logf("%d of %d hosts deployed the release; its first wave has %d", tried, len(m.names), first)
	if tried == 0 || tried > first {
		m.t.Errorf("%d hosts deployed a release that fails everywhere, but its first wave has %d", tried, first)
	}
	if s.State != "halted" && first > 1 || len(s.Halts) > 4 {
		m.t.Errorf("the rollout is %s, with halts %+v", s.State, s.Halts)
	}
	if on := m.have("1.0"); len(on) != len(m.names) {
		m.t.Errorf("%d of %d hosts run the earlier version", len(on), len(m.names))
	}
}

func (m *manyHosts) failsOnAFew() {
	m.publish("3.0", "file.missing: [{name: /etc/bad}]")
	s := m.status()
	place := func(name string) uint32 {
		return s.Plan.Place(s.Rollout.Release, rollout.Host{Name: name, Region: strings.Split(name, "-")[2]})
	}
	slices.SortFunc(m.names, func(a, b string) int { return int(place(a)) - int(place(b)) })
	bad := 0
	for i := 14; i < len(m.names); i += 20 {
		bad++
		m.write(filepath.Join(m.roots, m.names[i], "etc/bad"), "", 0o644)
	}
	good := 0
	for i := 0; i < 16 && good < len(m.names)-bad; i++ {
		m.everyone(fmt.Sprintf("a release that fails on every twentieth host, round %d", i+1), exit.OK, exit.RolledBack)
		good = len(m.have("3.0"))
	}
	if s = m.status(); len(s.Halts) > 0 || good != len(m.names)-bad || m.tried("3.0") != len(m.names) {
		m.t.Errorf("%d of %d hosts run it, it fails on %d, and %d tried it; the rollout is %s, with halts %+v", good,
			len(m.names), bad, m.tried("3.0"), s.State, s.Halts)
	}
}
