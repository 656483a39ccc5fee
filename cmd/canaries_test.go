package cmd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// Canaries: secrets that must not leave a host. Each has a unique ending.
const (
	canaryLong = `c4nary-long/"quoted" 'twice' $HOME & 100% <of> \it+plus=` +
		"0123456789-abcdefghijklmnopqrstuvwxyz-0123456789-abcdefghijklmnopqrstuvwxyz-é-l0ngend"
	canaryLines = "-----BEGIN C4NARY KEY-----\nMIIc4naryFirstLineOfTheKey/0001\nMIIc4narySecondLineOfTheKey+0002\n" +
		"-----END C4NARY KEY-----"
	canaryNumber = "7351926408"
	canaryStart  = "c4nary-start"
	canaryWhole  = "c4nary-start-and-its-r3st"
	canaryURL    = "c4naryPl/ain%pw"
	canaryStore  = "c4nary+store/credential0000000000000000"
)

// canaries returns the texts to search for, each with its name.
func canaries() map[string]string {
	return map[string]string{
		"the long value": canaryLong, "its end": "l0ngend", "line 1": "MIIc4naryFirstLineOfTheKey/0001",
		"line 2": "MIIc4narySecondLineOfTheKey+0002", "the key": canaryLines,
		"the number": canaryNumber, "the start": canaryStart, "the rest": canaryWhole, "its rest": "-and-its-r3st",
		"the URL's password":     canaryURL,
		"the store's credential": canaryStore,
	}
}

// formsOf returns the forms in which a text may contain a canary, made without the redactor's functions.
func formsOf(canary string) map[string]string {
	inJSON, _ := json.Marshal(canary)
	plainJSON := new(bytes.Buffer)
	e := json.NewEncoder(plainJSON)
	e.SetEscapeHTML(false)
	_ = e.Encode(canary)
	all := map[string]string{
		"raw": canary, "query": url.QueryEscape(canary), "path": url.PathEscape(canary),
		"JSON": string(inJSON[1 : len(inJSON)-1]), "JSON without HTML": strings.Trim(strings.TrimSpace(plainJSON.String()),
			"\n")[1 : plainJSON.Len()-2],
		"Go": strconv.Quote(canary)[1 : len(strconv.Quote(canary))-1], "shell": strings.ReplaceAll(canary, "'", `'\''`),
		"hex": hex.EncodeToString([]byte(canary)),
	}
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding,
		"base64url": base64.URLEncoding} {
		for before := range 3 {
			// The characters before and after the canary change up to two characters at either end.
			text := encoding.EncodeToString([]byte("user"[:before] + canary + "~~~"))
			all[fmt.Sprintf("%s at %d", name, before)] = text[(before*8+5)/6 : (before+len(canary))*8/6]
		}
		all[name+" padded"] = encoding.EncodeToString([]byte(canary))
	}
	return all
}

// allForms returns a text with every canary in every form, as programs print them.
func allForms() string {
	var out strings.Builder
	for name, canary := range canaries() {
		if name == "the store's credential" || name == "the URL's password" || strings.HasSuffix(name, "end") ||
			name == "its rest" {
			continue // no program prints these alone
		}
		for how, text := range formsOf(canary) {
			fmt.Fprintf(&out, "%s %s: [%s]\n", name, how, text)
		}
		for before := range 3 {
			fmt.Fprintf(&out, "basic %s\n", base64.RawStdEncoding.EncodeToString([]byte("u:p"[:before]+canary+"x")))
			wrapped := base64.StdEncoding.EncodeToString([]byte("u:p"[:before] + canary + "\n"))
			for from := 0; from < len(wrapped); from += 76 { // base64(1) prints such lines
				out.WriteString(wrapped[from:min(from+76, len(wrapped))] + "\n")
			}
		}
	}
	fmt.Fprintf(&out, "cloning https://deploy:%s@git.example.com/x.git?sig=%s\n\x1b]52;c;aGVsbG8=\x07", canaryURL,
		"c4nary-start-and-its-r3st")
	return out.String()
}

// canaryHost is a root directory with a shell and little else, in which the built agent runs as root.
type canaryHost struct {
	t        *testing.T
	root     string
	env      []string
	mu       sync.Mutex
	webhooks []byte
	said     map[string]string // output of commands, by command
}

func newCanaryHost(t *testing.T) *canaryHost {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: the agent runs in another root directory")
	}
	if out, err := exec.Command("unshare", "--mount", "--propagation", "private", "mount", "-t", "proc", "proc",
		t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("this test cannot mount /proc in the agent's root directory: %s", out)
	}
	h := &canaryHost{t: t, root: t.TempDir(), said: map[string]string{}}
	for _, dir := range []string{"store", "tmp", "etc/corpus", "bin", "usr/bin", "dev", "proc", "var/lib/metrics",
		"srv/projects/myapp/pillar", "root"} {
		h.must(os.MkdirAll(filepath.Join(h.root, dir), 0o755))
	}
	h.must(unix.Mknod(filepath.Join(h.root, "dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	for _, program := range []string{"sh", "cat", "env"} {
		h.copyProgram(program)
	}
	h.copy(filepath.Join(bin(t), "corpus-agent"), "/usr/bin/corpus-agent")
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.webhooks = append(h.webhooks, body...)
		h.mu.Unlock()
	}))
	t.Cleanup(hooks.Close)
	h.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nmyapp-user:x:900:900::/srv/projects/myapp/data:/bin/sh\n",
		0o644)
	h.write("/etc/group", "root:x:0:\nmyapp-user:x:900:\n", 0o644)
	h.write("/emitted", allForms(), 0o600)
	h.write("/usr/bin/emit",
		"#!/bin/sh\ncat /emitted; cat /emitted >&2; env\n[ -z \"$CORPUS_CFG\" ] || cat \"$CORPUS_CFG\"\n", 0o755)
	h.write("/usr/bin/hear", "#!/bin/sh\n{ cat; env; } >>/heard\n", 0o755)
	h.write("/usr/bin/salt-call", "#!/bin/sh\nemit\nexit 3\n", 0o755)
	h.configure(hooks.URL, "")
	h.env = []string{
		"PATH=/usr/bin:/bin", "HOME=/root", "CORPUS_STORE=file:///store", "CORPUS_TRUST_ROOT=/root.json",
		"CORPUS_METADATA_ENABLED=false",
		"AWS_ACCESS_KEY_ID=AKIAC4NARY", "AWS_SECRET_ACCESS_KEY=" + canaryStore, "MINIO_SECRET_KEY=" + canaryStore,
		"AWS_SESSION_TOKEN=" + canaryStore,
	}
	h.pillar()
	return h
}

func (h *canaryHost) configure(webhook, more string) {
	h.write("/etc/corpus/agent.yaml", `
service: myapp
instance: testing
region: useast1
node: "1"
notify:
  on: [success, failure, rollback, no-change]
  journal: false
  webhook: {url: "`+webhook+`/hook", tries: 1}
  command: [/usr/bin/hear]
metrics: {textfile: /var/lib/metrics/corpus.prom}
reports: {upload: true}
converge: {state_output: full}
`+more, 0o600)
}

// pillar encrypts the canaries for the host.
func (h *canaryHost) pillar() {
	key, err := age.GenerateX25519Identity()
	h.must(err)
	h.write("/etc/corpus/age.key", key.String()+"\n", 0o600)
	var pillar strings.Builder
	pillar.WriteString("#!yaml|age\ncanary:\n")
	for name, plain := range map[string]string{"long": canaryLong, "lines": canaryLines, "number": canaryNumber,
		"start": canaryStart, "whole": canaryWhole} {
		var sealed bytes.Buffer
		a := armor.NewWriter(&sealed)
		w, err := age.Encrypt(a, key.Recipient())
		h.must(err)
		_, err = io.WriteString(w, plain)
		h.must(err)
		h.must(w.Close())
		h.must(a.Close())
		pillar.WriteString("  " + name + ": |\n    " + strings.ReplaceAll(strings.TrimSpace(sealed.String()), "\n",
			"\n    ") + "\n")
	}
	h.write("/srv/projects/myapp/pillar/init.sls", pillar.String(), 0o600)
	h.write("/srv/projects/myapp/pillar/top.sls", "base:\n  '*':\n    - init\n", 0o600)
}

func (h *canaryHost) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *canaryHost) write(path, text string, mode os.FileMode) {
	h.t.Helper()
	full := filepath.Join(h.root, path)
	h.must(os.MkdirAll(filepath.Dir(full), 0o755))
	h.must(os.WriteFile(full, []byte(text), mode))
	h.must(os.Chmod(full, mode))
}

func (h *canaryHost) copy(from, to string) {
	h.t.Helper()
	data, err := os.ReadFile(from)
	h.must(err)
	h.write(to, string(data), 0o755)
}

// copyProgram copies a program with the libraries that it needs.
func (h *canaryHost) copyProgram(program string) {
	path, err := exec.LookPath(program)
	h.must(err)
	h.copy(path, "/bin/"+program)
	libraries, _ := exec.Command("ldd", path).Output() // the command fails for a static program
	for _, word := range strings.Fields(string(libraries)) {
		if strings.HasPrefix(word, "/") {
			h.copy(word, word)
		}
	}
}

// runs runs a command of the agent on the host, keeps its output and returns its exit code.
func (h *canaryHost) runs(args ...string) int {
	h.t.Helper()
	chroot, err := exec.LookPath("chroot")
	h.must(err)
	// Only this process and its children see the mount, which ends with them.
	const inside = `mount -t proc proc "$0/proc" && exec env -i "$@"`
	cmd := exec.Command("unshare",
		append(append([]string{"--mount", "--propagation", "private", "sh", "-c", inside, h.root}, h.env...),
			append([]string{chroot, h.root, "/usr/bin/corpus-agent"}, args...)...)...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	_ = cmd.Run() // the exit code is read below
	line := strings.Join(args, " ")
	h.said["stdout of "+line] += out.String()
	h.said["stderr of "+line] += bad.String()
	return cmd.ProcessState.ExitCode()
}

// publishes publishes a release with these files, on a workstation with the store and the keys.
func (h *canaryHost) publishes(version string, files map[string]string) {
	h.t.Helper()
	tree, keys := h.t.TempDir(), filepath.Join(h.root, "keys")
	for path, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!/bin/sh") {
			mode = 0o755
		}
		full := filepath.Join(tree, path)
		h.must(os.MkdirAll(filepath.Dir(full), 0o755))
		h.must(os.WriteFile(full, []byte(text), mode))
	}
	run := func(args ...string) {
		h.t.Helper()
		cmd := exec.Command(filepath.Join(bin(h.t), "corpus"), args...)
		cmd.Dir = h.root
		cmd.Env = append(os.Environ(), "CORPUS_STORE=file://"+h.root+"/store", "CORPUS_KEYS="+keys,
			"CORPUS_TRUST_ROOT="+keys+"/root.json")
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("corpus %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if _, err := os.Stat(keys); err != nil {
		run("keys", "new")
		run("store", "init")
		h.copy(filepath.Join(keys, "root.json"), "/root.json")
	}
	file := filepath.Join(h.t.TempDir(), "myapp-"+version+".tar.zst")
	run("build", tree, "-o", file)
	run("publish", "myapp", version, file, "--channel", "testing")
}

// outputsOfHost returns all texts that left the agent: its output, and files that other users can read.
func (h *canaryHost) outputsOfHost() map[string]string {
	all := map[string]string{"webhook": string(h.webhooks)}
	for what, text := range h.said {
		all[what] = text
	}
	read := func(what, path string) {
		if data, err := os.ReadFile(filepath.Join(h.root, path)); err == nil {
			all[what] = string(data)
		}
	}
	read("notify program", "heard")
	read("ledger", "var/lib/corpus/ledger.json")
	for _, dir := range []string{"var/lib/corpus/reports", "var/lib/metrics", "store/reports",
		"srv/projects/myapp/archives"} {
		_ = filepath.WalkDir(filepath.Join(h.root, dir), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && (dir != "srv/projects/myapp/archives" || strings.HasSuffix(path, ".json")) {
				name, _ := filepath.Rel(h.root, path)
				read(name, name)
			}
			return nil
		})
	}
	return all
}

// TestCanariesStayOnTheHost runs releases that print secrets in every possible place, in successful and failing runs,
// and searches for the secrets in everything that leaves the host, in every form.
func TestCanariesStayOnTheHost(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	h := newCanaryHost(t)
	const top = "base:\n  '*':\n    - app\n"
	program := "#!/bin/sh\nemit\n"
	states := `
{% set c = pillar['canary'] %}
/etc/app.conf:
  file.managed:
    - mode: '0644'
    - contents: {{ c.long|json }}
/etc/app.key:
  file.managed:
    - mode: '0644'
    - contents: {{ c.lines|json }}
/etc/app.json:
  file.serialize:
    - mode: '0644'
    - dataset: {pin: {{ c.number|int }}, text: {{ c.whole|json }}, list: [{{ c.start|json }}, {{ c.number|int }}]}
emits:
  cmd.run:
    - name: emit; echo {{ c.whole|json }}
login {{ c.whole }} {{ c.number }}:
  test.configurable_test_state:
    - changes: True
    - result: True
    - comment: {{ ('said ' ~ c.long ~ ' and ' ~ c.number)|json }}
app_token:
  environ.setenv:
    - value: {{ c.long|json }}
/etc/fetched:
  file.managed:
    - source: "http://deploy:` + canaryURL + `@127.0.0.1:1/x?sig=` + canaryWhole + `"
    - skip_verify: True
    - onlyif: "false"
`
	files := func(more map[string]string) map[string]string {
		all := map[string]string{
			"salt/config/states/top.sls": top, "salt/config/states/app.sls": states, ".salt/PILLAR.sample": "data: {a: b}\n",
			"hooks/pre-release.d/10": program, "hooks/post-release.d/10": program, "hooks/pre-archive.d/10": program,
			".salt/install": program, ".salt/rollback": program, ".salt/notify": program, ".salt/release-sync": program,
			".salt/archive": program,
		}
		for path, text := range more {
			all[path] = text
		}
		return all
	}
	expect := func(want int, args ...string) {
		t.Helper()
		if got := h.runs(args...); got != want {
			line := strings.Join(args, " ")
			t.Fatalf("corpus-agent %s: exit code %d, want %d\n%s%s", line, got, want, tail(h.said["stdout of "+line]),
				tail(h.said["stderr of "+line]))
		}
	}
	h.publishes("1", files(nil))
	expect(0, "deploy", "--test")
	expect(0, "deploy", "-v", "--progress", "json")
	expect(0, "changes")
	expect(0, "changes", "--json")
	h.publishes("2", files(map[string]string{"salt/config/states/app.sls": states + `
fails {{ c.whole }}:
  cmd.run:
    - name: "emit; : {{ c.start }} {{ c.whole }}; exit 3"
    - env: [{TOKEN: {{ c.long|json }}}]
`}))
	expect(7, "deploy", "--json", "--progress", "json")
	h.publishes("3", files(map[string]string{".salt/install": program + "exit 3\n"}))
	expect(7, "deploy")
	h.publishes("4",
		files(map[string]string{"salt/config/states/app.sls": states +
			"\nbad: [\"{{ c.long }}\", {{ c.whole }}: {{ c.number }}\n  {{ c.lines }}\n"}))
	expect(2, "deploy", "--test")
	expect(7, "deploy", "--verbose")
	h.publishes("5", files(map[string]string{"hooks/pre-release.d/10": program + "exit 3\n"}))
	expect(7, "deploy", "--json", "-v")
	h.publishes("6",
		files(map[string]string{"salt/config/states/app.sls": states +
			"\nclone:\n  file.managed:\n    - name: /etc/x\n    - source: http://deploy:" + canaryURL + "@127.0.0.1:1/x?sig=" +
			canaryWhole + "\n    - skip_verify: True\n"}))
	expect(7, "deploy")
	h.publishes("7",
		files(map[string]string{"salt/config/states/app.sls": "{{ salt['no.such'](pillar['canary']['long']) }}\n" +
			"{{ raise(pillar['canary']['whole']) }}\n"}))
	expect(7, "deploy")
	expect(0, "converge")
	for _, line := range []string{
		"status", "status --json", "history", "history --json", "report", "report --json", "changes", "changes --json",
		"pillar", "pillar --json", "verify",
		"why emits", "why --json emits", "why app", "why c4nar", "why login",
		"call pillar.items", "call pillar.get canary:long", "call pillar.get canary:number --out json",
		"call state.show_sls app", "call state.show_highstate", "call state.apply", "call state.apply --out json",
		"call state.highstate test=True",
		"call cmd.run emit", "call cmd.run_all emit", "call slsutil.renderer /etc/app.conf", "call grains.items",
		"call environ.items",
		"project list", "project get-configuration myapp", "project show myapp",
	} {
		h.runs(strings.Fields(line)...)
	}
	h.env = append(h.env, "CORPUS_ENGINE=salt-call")
	expect(1, "converge", "--json")
	h.env[len(h.env)-1] = "CORPUS_ENGINE=command"
	h.env = append(h.env, "CORPUS_ENGINE_COMMAND=/usr/bin/salt-call")
	expect(1, "converge")
	h.runs("report", "--json")

	ways := h.outputsOfHost()
	for _, needed := range []string{"webhook", "notify program", "ledger", "var/lib/metrics/corpus.prom"} {
		if ways[needed] == "" {
			t.Errorf("%s is empty", needed)
		}
	}
	if dir := os.Getenv("CANARY_DUMP"); dir != "" {
		for what, text := range ways {
			_ = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(what, "/", "_")), []byte(text), 0o600)
		}
	}
	for what, text := range ways {
		shows(t, what, text)
	}
}

func tail(text string) string { return text[max(0, len(text)-700):] }

// shows fails the test for each canary in a text, and prints the text around it.
func shows(t *testing.T, what, text string) {
	t.Helper()
	showsAny(t, what, text, canaries())
}

func showsAny(t *testing.T, what, text string, all map[string]string) {
	t.Helper()
	for name, canary := range all {
		for how, sight := range formsOf(canary) {
			if len(sight) < 5 {
				continue
			}
			if at := strings.Index(text, sight); at >= 0 {
				t.Errorf("%s contains %s (%s): ...%s", what, name, how,
					strconv.Quote(text[max(0, at-120):min(len(text), at+len(sight)+20)]))
				break
			}
		}
	}
	if strings.Contains(text, "\x1b]52") {
		t.Errorf("%s has an escape sequence", what)
	}
}
