package cmd_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// Canaries of places that TestCanariesStayOnTheHost does not use.
const (
	canaryGPG     = "c4nary-of-gpg-0123456789-end"
	canaryHook    = "c4naryWebhookPath0123456789"
	canaryStored  = "c4naryOfTheStoresURL"
	canaryMirror  = "c4naryOfTheMirrorsURL"
	canaryProbe   = "c4naryOfTheProbesURL"
	canaryEntered = "c4nary-that-was-typed-in"
	canaryGit     = "c4naryOfTheRepository"
)

func placeCanaries() map[string]string {
	all := canaries()
	for name, text := range map[string]string{
		"gpg's value": canaryGPG, "the webhook's path": canaryHook, "the store's login": canaryStored,
		"the mirror's login": canaryMirror, "the probe's login": canaryProbe,
		"standard input": canaryEntered, "the repository's login": canaryGit,
	} {
		all[name] = text
	}
	return all
}

// placeStates put secrets into all inputs of states: templates, contexts, logins of sources, environments.
const placeStates = `
{% set c = pillar['canary'] %}
{% set web = 'http://deploy:` + canaryGit + `@127.0.0.1:1' %}
repository:
  git.latest:
    - name: {{ web }}/app.git
    - target: /srv/app
repository with options:
  git.latest:
    - name: http://127.0.0.1:1/app.git
    - target: /srv/app2
    - https_user: deploy
    - https_pass: {{ pillar['sealed']|json }}
python:
  pip.installed:
    - name: "git+{{ web }}/app.git#egg=app"
    - index_url: {{ web }}/simple
    - extra_index_url: {{ web }}/simple
node:
  npm.installed:
    - name: "git+{{ web }}/app.git"
    - registry: {{ web }}/npm
ruby:
  gem.installed:
    - name: app
    - source: {{ web }}/gems
fetched:
  file.managed:
    - name: /etc/fetched
    - source: {{ web }}/x?sig={{ c.whole }}
    - source_hash: {{ web }}/x.sha256?token={{ c.whole }}
unpacked:
  archive.extracted:
    - name: /srv/unpacked
    - source: {{ web }}/x.tar.gz
    - skip_verify: True
rendered:
  file.managed:
    - name: /etc/rendered.private
    - source: salt://t.j2
    - template: jinja
    - mode: '0600'
    - context: {secret: {{ c.long|json }}, sealed: {{ pillar['sealed']|json }}}
rendered badly:
  file.managed:
    - name: /etc/rendered.badly
    - source: salt://bad.j2
    - template: jinja
    - context: {secret: {{ c.long|json }}, sealed: {{ pillar['sealed']|json }}}
from the pillar:
  file.managed:
    - name: /etc/pillar.private
    - contents_pillar: sealed
    - mode: '0600'
replaced:
  file.replace:
    - name: /etc/rendered.private
    - pattern: {{ pillar['sealed']|json }}
    - repl: {{ c.whole|json }}
appended:
  file.append:
    - name: /etc/rendered.private
    - text: [{{ pillar['sealed']|json }}]
options:
  ini.options_present:
    - name: /etc/options.private
    - sections: {a: {password: {{ pillar['sealed']|json }}}}
checked:
  test.check_pillar:
    - present: ["{{ pillar['sealed'] }}"]
conditional:
  cmd.run:
    - name: "true"
    - onlyif: "emit; : {{ pillar['sealed'] }}"
`

// argvProgram records its arguments, which every user of a host can read, and prints them.
const argvProgram = "#!/bin/sh\necho \"$0 $*\" >>/argv\ncase \"$*\" in *list*format*) echo '[]'; exit 0;; " +
	"*list*json*) echo '{}'; exit 0;; *list*) exit 0;; esac\ncat /emitted >&2\nenv >&2\nexit 3\n"

// TestCanariesOfEveryPlace puts secrets into the places of configuration, states and commands that
// TestCanariesStayOnTheHost does not use, ends runs by a refusal, a signal and SIGKILL, and searches the output of
// commands, the files that every user of the host can read, and the arguments of programs.
func TestCanariesOfEveryPlace(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	h := newCanaryHost(t)
	h.write("/emitted", "x "+canaryGPG+" http://deploy:"+canaryGit+"@127.0.0.1:1/app.git\n"+allForms(), 0o600)
	for _, program := range []string{"git", "pip", "pip3", "npm", "gem"} {
		h.write("/usr/bin/"+program, argvProgram, 0o755)
	}
	h.sealWithGPG()
	const top = "base:\n  '*':\n    - app\n"
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, allForms(), http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	states := strings.ReplaceAll(placeStates, "127.0.0.1:1", strings.TrimPrefix(refusing.URL, "http://"))
	files := func(more map[string]string) map[string]string {
		all := map[string]string{
			"salt/config/states/top.sls": top, "salt/config/states/app.sls": states,
			"salt/config/states/t.j2":   "{{ secret }} {{ sealed }}\n",
			"salt/config/states/bad.j2": "{{ secret }} {{ sealed }}\n{{ raise(secret ~ sealed) }}\n",
		}
		for path, text := range more {
			all[path] = text
		}
		return all
	}
	h.publishes("1", map[string]string{"salt/config/states/top.sls": top,
		"salt/config/states/app.sls": "ok:\n  test.nop: []\n"})
	if got := h.runs("deploy"); got != 0 {
		t.Fatalf("the first deploy ends with %d: %s", got, tail(h.said["stdout of deploy"]+h.said["stderr of deploy"]))
	}
	// A webhook that does not respond, probes with a login, states that all fail.
	h.configure("http://127.0.0.1:1/services/"+canaryHook,
		"fetch: {retry: 1s}\nhealth:\n  deadline: 1s\n  probes: [{http: \"http://probe:"+canaryProbe+"@127.0.0.1:1/\"}]\n")
	h.publishes("2", files(nil))
	h.env = append(h.env, "CORPUS_CONVERGE_FAILHARD=false")
	for _, line := range []string{"deploy --test", "deploy -v", "deploy --now --json", "converge --test --json",
		"config check", "config", "config show", "config --json"} {
		h.runs(strings.Fields(line)...)
	}
	h.env = h.env[:len(h.env)-1]
	// The compiler error contains arguments of the state.
	h.publishes("2.1", files(map[string]string{"salt/config/states/app.sls": `
{% set c = pillar['canary'] %}
unknown argument:
  file.managed:
    - name: /etc/unknown.private
    - contents: x
    - {{ pillar['sealed'] }}: {{ c.long|json }}
    - mode: {{ c.whole|json }}
    - require: [{file: {{ pillar['sealed'] }}}]
{{ c.whole }}:
  file.{{ pillar['sealed'] }}: []
include: [{{ pillar['sealed'] }}]
`}))
	h.runs("deploy", "--test")
	h.runs("deploy", "--verbose")
	h.publishes("3", map[string]string{"salt/config/states/top.sls": top,
		"salt/config/states/app.sls": "ok:\n  test.nop: []\n"})
	h.runs("deploy")
	for _, id := range []string{"repository", "python", "fetched", "rendered", "checked", "conditional"} {
		h.runs("why", id)
		h.runs("why", "--json", id)
	}
	// Stores whose URL has a login.
	h.configure("http://127.0.0.1:1/services/"+canaryHook, "store: https://deploy:"+canaryStored+
		"@127.0.0.1:1/x\nmirrors: [\"https://deploy:"+canaryMirror+"@127.0.0.1:1/y?sig="+canaryMirror+
		"\"]\nfetch: {retry: 1s}\n")
	stored := h.env
	h.env = nil
	for _, e := range stored {
		if !strings.HasPrefix(e, "CORPUS_STORE=") {
			h.env = append(h.env, e)
		}
	}
	for _, line := range []string{"deploy", "deploy --json", "config check", "config check --json", "config",
		"config --json", "status", "status --json", "verify", "deploy --store https://deploy:" + canaryStored +
			"@127.0.0.1:1/x --trust-root /root.json"} {
		h.runs(strings.Fields(line)...)
	}
	h.env = stored
	h.recordLogin()
	h.configure("http://127.0.0.1:1/services/"+canaryHook, "")
	// A project with settings from standard input.
	h.runs("project", "init", "shop")
	h.runs("project", "set-configuration", "shop", "data:password="+canaryEntered)
	h.runs("project", "set-configuration", "shop", "data:bad=["+canaryEntered)
	h.runs("project", "deploy", "shop")
	h.interrupted(
		files(map[string]string{"salt/config/states/app.sls": "{% set c = pillar['canary'] %}\nwaits:\n  cmd.run:\n" +
			"    - name: \"emit; sleep 60\"\n    - env: [{TOKEN: {{ c.long|json }}}]\n"}))
	for _, line := range []string{
		"status", "status --json", "history", "history --json", "report", "report --json", "changes", "changes --json",
		"verify", "why", "grains", "grains --json", "completion bash", "--help",
		"__complete why c4n", "__complete why ", "__complete report ", "__complete changes ", "__complete call state.sls ",
		"__complete call ", "__complete project set-configuration shop ", "__complete unquarantine ",
		"__complete rollback --to ",
		"call config.get sealed", "call state.show_low_sls app", "call state.show_top", "call pillar.get sealed --out yaml",
		"call pillar.item sealed", "call pillar.ls", "call pillar.raw", "call test.arg x",
		"call state.single test.nop name=x", "call cp.get_template salt://t.j2 /etc/got.private",
	} {
		h.runs(strings.Split(line, " ")...)
	}
	ways := h.outputsOfHost()
	for path, text := range h.readable() {
		ways[path] = text
	}
	if data, err := os.ReadFile(filepath.Join(h.root, "argv")); err != nil || strings.Count(string(data), "\n") < 4 {
		t.Errorf("git, pip, npm and gem did not run: %v\n%s", err, data)
	} else {
		ways["arguments of programs"] = string(data)
	}
	if dir := os.Getenv("CANARY_DUMP"); dir != "" {
		for what, text := range ways {
			_ = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(what, "/", "_"), " ", "_")), []byte(text),
				0o600)
		}
	}
	for what, text := range ways {
		if strings.HasPrefix(what, "stdout of config") { // it prints the settings of root's file to root
			text = strings.ReplaceAll(text, canaryHook, "")
		}
		showsAny(t, what, text, placeCanaries())
	}
}

// recordLogin makes the host's records contain a store whose URL has a login, as after a deploy from it.
func (h *canaryHost) recordLogin() {
	const ledger = "/var/lib/corpus/ledger.json"
	data, err := os.ReadFile(filepath.Join(h.root, ledger))
	h.must(err)
	h.write(ledger, strings.ReplaceAll(string(data), "file:///store", "https://deploy:"+canaryStored+"@127.0.0.1:1/x"),
		0o600)
	for _, line := range []string{"status", "status --json", "status -v", "why", "why --json", "history --json", "verify",
		"hold --reason x", "status", "unhold"} {
		h.runs(strings.Fields(line)...)
	}
	h.write(ledger, string(data), 0o600)
}

// sealWithGPG gives the host a gpg key and a pillar value that is encrypted for it.
func (h *canaryHost) sealWithGPG() {
	for _, program := range []string{"gpg", "gpg-agent"} {
		path, err := exec.LookPath(program)
		if err != nil {
			h.t.Skipf("%s is not installed: %v", program, err)
		}
		h.copyProgram(program)
		h.copy(path, "/usr/bin/"+program)
	}
	home := h.t.TempDir() // short enough for the path of the agent's socket
	gpg := func(in string, args ...string) string {
		h.t.Helper()
		cmd := exec.Command("gpg",
			append([]string{"--homedir", home, "--batch", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""},
				args...)...)
		cmd.Stdin = strings.NewReader(in)
		var out, bad bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &bad
		if err := cmd.Run(); err != nil {
			h.t.Fatalf("gpg %v: %v\n%s", args, err, bad.String())
		}
		return out.String()
	}
	gpg("", "--quick-generate-key", "host@example.com", "default", "default", "never")
	h.t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	sealed := gpg(canaryGPG, "--armor", "--encrypt", "--trust-model", "always", "-r", "host@example.com")
	keys := gpg("", "--armor", "--export-secret-keys")
	h.write("/private.asc", keys, 0o600)
	h.must(os.MkdirAll(filepath.Join(h.root, "etc/corpus/gpgkeys"), 0o700))
	into := exec.Command("gpg", "--homedir", filepath.Join(h.root, "etc/corpus/gpgkeys"), "--batch", "--import",
		filepath.Join(h.root, "private.asc"))
	if out, err := into.CombinedOutput(); err != nil {
		h.t.Fatalf("importing the key: %v\n%s", err, out)
	}
	_ = exec.Command("gpgconf", "--homedir", filepath.Join(h.root, "etc/corpus/gpgkeys"), "--kill", "all").Run()
	h.must(os.Remove(filepath.Join(h.root, "private.asc")))
	const init = "/srv/projects/myapp/pillar/init.sls"
	byAge, err := os.ReadFile(filepath.Join(h.root, init))
	h.must(err)
	h.write(init, strings.Replace(string(byAge), "|age", "|age|gpg", 1)+"sealed: |\n  "+
		strings.ReplaceAll(strings.TrimSpace(sealed), "\n", "\n  ")+"\n", 0o600)
}

// interrupted ends runs during a state with secrets: by SIGTERM, by SIGQUIT, at which Go prints the stack of each
// goroutine, and by SIGKILL, after which another run cleans up.
func (h *canaryHost) interrupted(files map[string]string) {
	h.copyProgram("sleep")
	h.publishes("4", files)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL} {
		h.runs("unquarantine", "myapp")
		chroot, err := exec.LookPath("chroot")
		h.must(err)
		const inside = `mount -t proc proc "$0/proc" && exec env -i "$@"`
		cmd := exec.Command("unshare",
			append(append([]string{"--mount", "--propagation", "private", "sh", "-c", inside, h.root}, h.env...),
				"GOTRACEBACK=all", chroot, h.root, "/usr/bin/corpus-agent", "deploy", "--now", "-v")...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		h.must(cmd.Start())
		time.Sleep(3 * time.Second)
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
		h.said["what a run ended by "+signal.String()+" printed"] = out.String()
	}
	h.runs("converge")
}

// readable returns the files of the host that every user can read, as each directory above them permits. It omits the
// files of the test, and the store, which represents another host.
func (h *canaryHost) readable() map[string]string {
	all := map[string]string{}
	h.must(filepath.WalkDir(h.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(h.root, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name != "." && info.Mode().Perm()&0o001 == 0 || name == "keys" || name == "proc" || name == "dev" ||
				name == "usr/bin" || name == "bin" || strings.HasPrefix(name, "lib") {
				return fs.SkipDir
			}
			return nil
		}
		if !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 || strings.HasPrefix(name, "etc/app.") ||
			name == "argv" || name == "heard" {
			return nil
		}
		data, err := os.ReadFile(path)
		all["file "+name+" of mode "+strconv.FormatUint(uint64(info.Mode().Perm()), 8)] = string(data)
		return err
	}))
	return all
}
