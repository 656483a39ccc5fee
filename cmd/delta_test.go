//go:build peers

package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// traffic counts the requests and bytes of a web server by the suffixes of names.
type traffic struct {
	mu       sync.Mutex
	bytes    map[string]int64
	requests map[string]int
}

func (c *traffic) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes, c.requests = map[string]int64{}, map[string]int{}
}

// serve serves a directory by HTTP.
func (c *traffic) serve(t *testing.T, where string) string {
	c.reset()
	files := http.FileServer(http.Dir(where))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countedWriter{ResponseWriter: w}
		files.ServeHTTP(counted, r)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bytes[filepath.Ext(r.URL.Path)] += counted.n
		c.requests[filepath.Ext(r.URL.Path)]++
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type countedWriter struct {
	http.ResponseWriter
	n int64
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// Limits for the results, as parts of the compressed artifact.
const (
	mostFetched = 0.12
	mostIndex   = 0.008
)

// benchRows is the environment variable with a regular expression for the rows to measure; all if it is empty.
const benchRows = "CORPUS_BENCH_ROWS"

// patience is the time limit of a program for one tree, so that a row that hangs does not stop the others.
const patience = 10 * time.Minute

// TestDeltas measures the bytes that a host fetches for the next version of real trees, with both programs and over
// HTTP, beside casync on the same trees. It needs Debian's apt-get, python3 and root.
func TestDeltas(t *testing.T) {
	rows, err := regexp.Compile(os.Getenv(benchRows))
	if err != nil {
		t.Fatalf("%s: %v", benchRows, err)
	}
	casync, env, reason := fetchCasync(t)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "change\tartifact\tindex\tfetched\trequests\tnew data chunks\tcasync: index\tfetched\trequests")
	chosen := 0
	for _, g := range allSeries(t) {
		g.changes = slices.DeleteFunc(g.changes, func(c change) bool { return !rows.MatchString(g.name + ": " + c.name) })
		if chosen += len(g.changes); len(g.changes) == 0 {
			continue
		}
		if reason := g.absent(); reason != "" {
			fmt.Fprintf(w, "%s\tabsent: %s\n", g.name, reason)
			continue
		}
		t.Run(g.name, func(t *testing.T) { measureSeries(t, w, g, casync, env) })
	}
	_ = w.Flush()
	fmt.Print(b.String())
	if reason != "" {
		fmt.Println("casync is absent:", reason)
	}
	fmt.Println("desync is absent: its module cannot be fetched")
	if chosen == 0 {
		t.Errorf("%s=%s chooses no row", benchRows, rows)
	}
}

func measureSeries(t *testing.T, w *tabwriter.Writer, g series, casync string, env []string) {
	r := newReader(t)
	var seen traffic
	address := seen.serve(t, filepath.Join(r.dir, "store"))
	tree := filepath.Join(r.dir, "tree")
	if err := g.plant(tree); err != nil {
		t.Fatal(err)
	}
	publish := func(dir, version string) {
		r.must("corpus build ./"+dir+" -o "+version+".tar.zst", "corpus publish myapp "+version+" "+version+
			".tar.zst --channel testing")
	}
	r.must("rm -r base myapp", "corpus keys new", "corpus store init")
	publish("tree", "v0")
	r.must("corpus-agent deploy --trust-root root.json --store "+address, "cp -a root fresh")
	for i, c := range g.changes {
		version := fmt.Sprint("v", i+1)
		r.must("cp -a tree "+version, "chmod -R u+w root", "rm -r root", "cp -a fresh root")
		if err := c.edit(filepath.Join(r.dir, version)); errors.Is(err, errAbsent) {
			fmt.Fprintf(w, "%s\t%v\n", c.name, err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		publish(version, version)
		seen.reset()
		r.must("corpus-agent deploy --store " + address)
		r.must("diff -r --no-dereference " + version + " root/srv/service/current/")
		row := deltaRow{whole: size(t, filepath.Join(r.dir, version+".tar.zst")), index: seen.bytes[".index"],
			fetched: seen.bytes[".pack"] + seen.bytes[".zst"], requests: seen.requests[".pack"] + seen.requests[".zst"]}
		row.chunks = newChunks(t, r, "v0", version)
		row.check(t, g, c)
		line := fmt.Sprintf("%s: %s\t%s\t%s", g.name, c.name, row,
			compareWithCasync(t, r, casync, env, "tree", version, row.whole))
		t.Log(line) // in case a later row fails
		fmt.Fprintln(w, line)
		r.must("rm -rf --one-file-system " + version + " " + version + ".tar.zst")
	}
}

// deltaRow has the bytes that an agent fetched for a change.
type deltaRow struct {
	whole, index, fetched int64
	requests, chunks      int
}

func (r deltaRow) String() string {
	return fmt.Sprintf("%.1f MB\t%.2f %%\t%d KB, %.2f %%\t%d\t%d", float64(r.whole)/1e6, part(r.index, r.whole),
		r.fetched/1000, part(r.fetched, r.whole), r.requests, r.chunks)
}

func part(of, whole int64) float64 { return 100 * float64(of) / float64(whole) }

func (r deltaRow) check(t *testing.T, g series, c change) {
	if float64(r.fetched) > mostFetched*float64(r.whole) {
		t.Errorf("%s, %s: %d bytes were fetched of %d, want %.0f %% at most", g.name, c.name, r.fetched, r.whole,
			100*mostFetched)
	}
	if float64(r.index) > mostIndex*float64(r.whole) {
		t.Errorf("%s, %s: the index has %d bytes, want %.1f %% of %d at most", g.name, c.name, r.index, 100*mostIndex,
			r.whole)
	}
	if strings.HasPrefix(c.name, "two bytes") && r.chunks > 2 {
		t.Errorf("%s, %s: %d new chunks of data, want 2 at most", g.name, c.name, r.chunks)
	}
}

func size(t *testing.T, file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// newChunks counts the chunks of content, except the tree's list, that are in a version and not in an earlier one.
func newChunks(t *testing.T, r *reader, before, after string) int {
	t.Helper()
	known := map[chunk.Sum]bool{}
	for _, c := range signedIndex(t, r, before).Chunks {
		known[c.Sum] = true
	}
	x := signedIndex(t, r, after)
	fresh, at := 0, int64(0)
	for _, c := range x.Chunks {
		at += int64(c.Length)
		if !known[c.Sum] && at > x.List+int64(x.Size)*4 {
			fresh++ // chunks near the list may contain a part of it
		}
	}
	return fresh
}

func signedIndex(t *testing.T, r *reader, version string) *chunk.Index {
	t.Helper()
	seen := t.TempDir()
	root, err := os.ReadFile(filepath.Join(r.dir, "root.json"))
	if err == nil {
		err = trust.Pin(seen, root)
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := trust.Open(dir.New(filepath.Join(r.dir, "store")), seen, nil)
	if err == nil {
		err = client.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.Whole(t.Context(), "myapp")
	if err != nil {
		t.Fatal(err)
	}
	var release artifact.Release
	for _, r := range trust.Releases("myapp", role) {
		if r.Version == version {
			release = r
		}
	}
	signed, err := client.FetchSidecar(t.Context(), release, trust.KindIndex)
	if err != nil {
		t.Fatal(err)
	}
	x, err := chunk.Parse(signed)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// fetchCasync downloads Debian's casync and its libraries into a separate directory.
func fetchCasync(t *testing.T) (program string, env []string, reason string) {
	where := t.TempDir()
	script := `cd "$0" && apt-get download -q casync libfuse2 libcurl3-gnutls >/dev/null && for f in *.deb; do dpkg-deb ` +
		`-x "$f" . || exit; done`
	if out, err := exec.Command("sh", "-c", script, where).CombinedOutput(); err != nil {
		return "", nil, fmt.Sprintf("%v: %s", err, strings.TrimSpace(string(out)))
	}
	program = filepath.Join(where, "usr/bin/casync")
	env = append(os.Environ(), "CASYNC_PROTOCOL_PATH="+filepath.Join(where, "usr/lib/casync/protocols"),
		"LD_LIBRARY_PATH="+where+"/usr/lib/x86_64-linux-gnu:"+where+"/lib/x86_64-linux-gnu")
	starts := exec.Command(program, "--version")
	starts.Env = env
	if out, err := starts.CombinedOutput(); err != nil {
		return "", nil, fmt.Sprintf("it does not start: %v: %s", err, strings.TrimSpace(string(out)))
	}
	return program, env, ""
}

// compareWithCasync has casync fetch the same tree by HTTP over the previous one.
func compareWithCasync(t *testing.T, r *reader, casync string, env []string, before, after string, whole int64) string {
	if casync == "" {
		return "absent"
	}
	where := t.TempDir()
	run := func(args ...string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, casync, args...)
		cmd.Dir, cmd.Env = r.dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("casync %s: %v\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), out)
		}
		return err
	}
	if run("make", "--store="+where+"/castr", where+"/tree.caidx", after) != nil {
		return "failed"
	}
	var seen traffic
	address := seen.serve(t, where)
	if run("extract", "--store="+address+"/castr", "--seed="+before, address+"/tree.caidx", where+"/out") != nil {
		return "failed"
	}
	return fmt.Sprintf("%.2f %%\t%d KB, %.2f %%\t%d", part(seen.bytes[".caidx"], whole), seen.bytes[".cacnk"]/1000,
		part(seen.bytes[".cacnk"], whole), seen.requests[".cacnk"])
}
