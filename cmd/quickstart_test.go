package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typedBlock matches a block of docs/quickstart.md that a reader types; its second word names its requirements.
var typedBlock = regexp.MustCompile("(?sm)^```sh ?(\\w*)\n(.*?)^```")

// standIns replace the programs with which a reader reaches hosts. Each host is a directory, and systemctl starts the
// agent.
var standIns = map[string]string{
	"scp": `#!/bin/sh
for last; do :; done
host=${last#root@} host=${host%:}
mkdir -p "$HOSTS/$host/root"
while [ "$#" -gt 1 ]; do cp "$1" "$HOSTS/$host/root/"; shift; done
`,
	"ssh": `#!/bin/sh
export CORPUS_ROOT="$HOSTS/${1#root@}"
host=${1#root@}; shift
mkdir -p "$CORPUS_ROOT/etc/corpus"
echo "$host" >"$CORPUS_ROOT/etc/hostname"
cd "$CORPUS_ROOT/root" && env -u CORPUS_STORE -u CORPUS_KEYS sh -c "$(echo "$*" | sed "s#/etc/corpus#$CORPUS_ROOT/etc/corpus#g")"
`,
	"apt-get": "#!/bin/sh\nexit 0\n",
	"systemctl": `#!/bin/sh
[ "$*" = "start corpus-agent" ] || exit 5
set -a; . "$CORPUS_ROOT/etc/corpus/environment"
corpus-agent deploy
`,
}

// TestQuickStartAsTyped types docs/quickstart.md into a shell. Directories replace the bucket and each host, which has
// neither apt nor systemd: standIns replace these.
func TestQuickStartAsTyped(t *testing.T) {
	t.Parallel()
	dir, lines := t.TempDir(), 0
	var script strings.Builder
	for _, block := range typedBlock.FindAllStringSubmatch(page(t, "docs/quickstart.md"), -1) {
		if lines += strings.Count(block[2], "\n"); block[1] == "" {
			script.WriteString(block[2])
		}
	}
	if lines == 0 || lines > 40 {
		t.Errorf("a reader types %d lines, want at most 40", lines)
	}
	files := map[string]string{"corpus-agent_1.0_linux_amd64.deb": "", "store/.keep": ""}
	for name, text := range standIns {
		files["bin/"+name] = text
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", script.String()+
		"\nssh root@hello-testing-lab1-1 corpus-agent status\nssh root@hello-testing-lab1-1 corpus-agent history\n")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+"/bin:"+bin(t)+":"+os.Getenv("PATH"), "HOME="+dir, "HOSTS="+dir+"/hosts",
		"CORPUS_STORE=file://"+dir+"/store", "CORPUS_KEYS=keys", "CORPUS_METADATA_ENABLED=false", goCache(),
		"MINIO_ACCESS_KEY=corpus", "MINIO_SECRET_KEY=change-this")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	at := 0
	for _, want := range []string{"checks: ", " 0 warnings, 0 failed", "hello/testing is 1.0", "notes/testing is 1.0",
		"converged: hello 1.0", "hello/testing is 1.1", "rolled back to: hello 1.0", "tls.pem", "hello/testing is 1.2",
		"converged: hello 1.2", "hello/production is 1.2", "hello/production  1.2", "deployed      hello 1.2"} {
		next := strings.Index(string(out[at:]), want)
		if next < 0 {
			t.Fatalf("no output has %q after\n%s\nin\n%s", want, out[:at], out[at:])
		}
		at += next
	}
}
