package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// queues is a fake SQS: it keeps queues, throttles some requests like AWS, and counts concurrent requests.
type queues struct {
	mu       sync.Mutex
	all      map[string]map[string]string
	requests int
	throttle int // one of so many requests is throttled; 0 for none
	now      int
	most     int // maximum number of concurrent requests
	pause    time.Duration
	lost     string // name of a queue that cannot be made
	denied   string // the error of all requests
	opened   int    // connections
}

func (q *queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	q.now++
	q.most = max(q.most, q.now)
	q.mu.Unlock()
	time.Sleep(q.pause)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.now--
	q.requests++
	if q.throttle > 0 && q.requests%q.throttle == 0 {
		refuse(w, "ThrottlingException")
		return
	}
	var in struct {
		QueueName, QueueUrl string
		Attributes          map[string]string
	}
	if q.denied != "" {
		refuse(w, q.denied)
		return
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	name := in.QueueName + filepath.Base(in.QueueUrl)
	if in.QueueUrl == "" {
		name = in.QueueName
	}
	queue, there := q.all[name]
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	switch {
	case action == "CreateQueue" && name == q.lost:
		refuse(w, "InvalidAddress")
		return
	case action == "CreateQueue":
		q.all[name] = maps.Clone(in.Attributes)
	case !there:
		refuse(w, "com.amazonaws.sqs#QueueDoesNotExist")
		return
	case action == "SetQueueAttributes":
		maps.Copy(queue, in.Attributes)
	case action == "DeleteQueue":
		delete(q.all, name)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"QueueUrl": "http://" + r.Host + "/1/" + name, "Attributes": queue})
}

func refuse(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"__type":%q,"message":"refused"}`, code)
}

// orchestrator runs the command on a tree against the fake.
type orchestrator struct {
	*testing.T
	queues *queues
	url    string
	dir    string
	state  string // XDG_STATE_HOME, state below dir by default
}

func newOrchestrator(t *testing.T, files map[string]string) *orchestrator {
	t.Helper()
	o := &orchestrator{T: t, queues: &queues{all: map[string]map[string]string{}}, dir: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(o.dir, "tree", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewUnstartedServer(o.queues)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		o.queues.mu.Lock()
		defer o.queues.mu.Unlock()
		if s == http.StateNew {
			o.queues.opened++
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	o.url = server.URL
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(o.dir, "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(o.dir, "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return o
}

// run runs the command, checks its exit code, and returns its output.
func (o *orchestrator) run(code int, args ...string) (out, errs string) {
	o.Helper()
	var stderr bytes.Buffer
	out = o.runWith(strings.NewReader(""), &stderr, code, args...)
	return out, stderr.String()
}

// runWith runs the command with the given input and standard error.
func (o *orchestrator) runWith(in io.Reader, stderr io.Writer, code int, args ...string) string {
	o.Helper()
	var stdout bytes.Buffer
	all := append([]string{"orchestrate", "--tree", filepath.Join(o.dir, "tree"), "--endpoint", o.url}, args...)
	got := Main(context.Background(), all, cli.IO{In: in, Out: &stdout, Err: stderr,
		Getenv: func(name string) string {
			return map[string]string{"XDG_STATE_HOME": cmp.Or(o.state, filepath.Join(o.dir, "state"))}[name]
		}})
	if got != code {
		o.Fatalf("corpus %v ends with %d, want %d\n%s%s", args, got, code, &stdout, stderr)
	}
	return stdout.String()
}

const queueTree = `
{% for name in ['a', 'b'] %}
queue {{ name }}:
  boto_sqs.present:
    - name: shop-{{ grains.service_instance }}-{{ name }}
    - attributes: {DelaySeconds: {{ pillar.delay }}}
    - profile: account
{% endfor %}
`

func tree() map[string]string {
	return map[string]string{"shop.sls": queueTree, "pillar/top.sls": "base: {'*': [p]}",
		"pillar/p.sls": "delay: 3\naccount: {region: us-east-1, keyid: AKID, key: hidden-key}\n",
		"gone.sls":     "shop-testing-a:\n  boto_sqs.absent: [profile: account]\n",
		"host.sls":     "/etc/motd:\n  file.managed: [contents: x]\n"}
}

// TestOrchestrate plans, makes, changes and deletes queues.
func TestOrchestrate(t *testing.T) {
	o := newOrchestrator(t, tree())
	set := []string{"shop", "--set", "service_instance=testing"}
	out, _ := o.run(0, append(set, "--test")...)
	if !strings.Contains(out, "+ boto_sqs.present shop-testing-a") || !strings.Contains(out, "2 to make") ||
		len(o.queues.all) != 0 {
		t.Errorf("the plan is %s, and the queues are %v", out, o.queues.all)
	}
	out, errs := o.run(0, set...)
	if !strings.Contains(out, "2 made") || o.queues.all["shop-testing-b"]["DelaySeconds"] != "3" {
		t.Errorf("the run prints %s, and the queues are %v", out, o.queues.all)
	}
	if strings.Contains(out+errs, "hidden-key") {
		t.Errorf("the output has the key of the account: %s%s", out, errs)
	}
	o.queues.requests = 0
	if out, _ = o.run(0, set...); !strings.Contains(out, "2 as declared, 0 to make, 0 to change") ||
		o.queues.requests > 4 {
		t.Errorf("a second run prints %s and makes %d requests", out, o.queues.requests)
	}
	o.queues.all["shop-testing-a"]["DelaySeconds"] = "90"
	if out, _ = o.run(0, set...); !strings.Contains(out, "~ DelaySeconds: '90' -> '3'") ||
		o.queues.all["shop-testing-a"]["DelaySeconds"] != "3" {
		t.Errorf("after a change by hand, the output is %s and the queues are %v", out, o.queues.all)
	}
	if _, errs = o.run(2, "gone"); !strings.Contains(errs, "give --yes to agree") || len(o.queues.all) != 2 {
		t.Errorf("a deletion without --yes prints %s, and the queues are %v", errs, o.queues.all)
	}
	if o.run(0, "gone", "--yes"); len(o.queues.all) != 1 {
		t.Errorf("a deletion leaves %v", o.queues.all)
	}
	if reports, err := os.ReadDir(filepath.Join(o.dir, "state/corpus/orchestrate")); err != nil || len(reports) != 5 {
		t.Errorf("the directory has %d reports, %v", len(reports), err)
	}
}

// TestOrchestrateRefuses checks mistakes that are reported before any change.
func TestOrchestrateRefuses(t *testing.T) {
	o := newOrchestrator(t, tree())
	for want, args := range map[string][]string{
		"file.managed":      {"host"},
		`there is no SLS "`: {"nothing"},
		"has no value":      {"shop", "--set", "x"},
		"service_instance":  {"shop"},
	} {
		if _, errs := o.run(2, args...); !strings.Contains(errs, want) || o.queues.requests > 0 {
			t.Errorf("%v prints %s after %d requests, want %q", args, errs, o.queues.requests, want)
		}
	}
}

// TestOrchestrateContinuesAfterFailure checks that throttled requests are repeated, that other states run after a
// failure, and that the report is in JSON.
func TestOrchestrateContinuesAfterFailure(t *testing.T) {
	o := newOrchestrator(t, tree())
	o.queues.throttle, o.queues.lost = 4, "shop-testing-a"
	out, _ := o.run(3, "shop", "--set", "service_instance=testing", "--json")
	var report struct {
		Results map[string]struct {
			Result any
			Action string
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, r := range report.Results {
		actions = append(actions, r.Action)
	}
	slices.Sort(actions)
	if !slices.Equal(actions, []string{"fail", "make"}) || o.queues.all["shop-testing-b"] == nil {
		t.Errorf("the report is %s, and the queues are %v", out, o.queues.all)
	}
	o.queues.lost = ""
	if out, _ = o.run(0, "shop", "--set", "service_instance=testing"); !strings.Contains(out, "1 made") {
		t.Errorf("the next run prints %s", out)
	}
}

// TestOrchestrateNamesWrongCredentials checks that invalid keys are named as the reason, without a retry, and are not
// shown.
func TestOrchestrateNamesWrongCredentials(t *testing.T) {
	o := newOrchestrator(t, tree())
	o.queues.denied = "InvalidClientTokenId"
	out, errs := o.run(3, "shop", "--set", "service_instance=testing")
	if !strings.Contains(out+errs, "renew the credentials of the profile") || strings.Contains(out+errs, "hidden-key") ||
		o.queues.requests != 2 {
		t.Errorf("wrong credentials give %s%s after %d requests", out, errs, o.queues.requests)
	}
}

// TestOrchestrateRunsInParallel checks that resources are read concurrently, and those that refer to one another in
// order.
func TestOrchestrateRunsInParallel(t *testing.T) {
	var text strings.Builder
	for i := range 24 {
		fmt.Fprintf(&text, "q%d:\n  boto_sqs.present: [region: us-east-1, keyid: a, key: b]\n", i)
	}
	text.WriteString("dead:\n  boto_sqs.present:\n    - region: us-east-1\n    - keyid: a\n    - key: b\n" +
		"    - attributes: {RedrivePolicy: {deadLetterTargetArn: 'arn:aws:sqs:us-east-1:1:q3', maxReceiveCount: 2}}\n")
	o := newOrchestrator(t, map[string]string{"many.sls": text.String()})
	o.queues.pause = 20 * time.Millisecond
	if out, _ := o.run(0, "many"); !strings.Contains(out, "25 made") || o.queues.most < 4 || o.queues.most > 8 {
		t.Errorf("%d requests ran at once: %s", o.queues.most, out)
	}
	o.queues.most, o.queues.opened = 0, 0
	if o.run(0, "many", "--parallel", "1"); o.queues.most != 1 || o.queues.opened > 1 {
		t.Errorf("with --parallel 1, %d requests ran at once, on %d connections", o.queues.most, o.queues.opened)
	}
}
