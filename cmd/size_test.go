package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// mostBytes is the size limit of the program of hosts: 27 MiB, 1 MiB for fleets, half a MiB for modules in Python,
// 1 MiB for nodes, and half a MiB for LDAP, shorter runs, and classes, volumes and mounts of guests.
// docs/dependencies.md lists the use of each megabyte.
const mostBytes = 30 << 20

// unlinked returns large functions of libraries that a host does not need. If the code uses one, the linker keeps it.
func unlinked() map[string]string {
	return map[string]string{
		"github.com/aws/aws-sdk-go-v2/config.":        "use grains/ec2/account: people sign in with the rest",
		"github.com/aws/aws-sdk-go-v2/service/sso":    "people sign in with it, and with ssooidc",
		"github.com/aws/aws-sdk-go-v2/service/signin": "people sign in with it",
		"google.golang.org/protobuf/":                 "nothing here speaks it",
		"github.com/sigstore/":                        "it links protobuf; use artifact/tuf",
		"github.com/theupdateframework/":              "it links sigstore; use artifact/tuf",
		"github.com/pelletier/go-toml/v2.Unmarshal":   "viper reads no file here: see merge in agent/config",
		"go.yaml.in/yaml/v3.Unmarshal":                "viper reads no file here: see merge in agent/config",
		"github.com/mholt/archives.SevenZip.Extract":  "no such archive is unpacked",
		"github.com/mholt/archives.Rar.Extract":       "no such archive is unpacked",
		"html/template.(*Template).Execute":           "nothing here writes pages",
	}
}

// TestSize builds the program of hosts as `go install` and releases do, stripped, for the machine on which releases are
// measured.
func TestSize(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "corpus-agent")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", file, "./corpus-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %.2f MiB", len(program), float64(len(program))/(1<<20))
	if len(program) > mostBytes {
		t.Errorf("corpus-agent has %d bytes, want at most %d: `go tool nm -size -sort size` of an unstripped build lists "+
			"what is large", len(program), mostBytes)
	}
	checkDocumentedSize(t, len(program))
	for name, reason := range unlinked() { // names of functions remain after stripping
		if bytes.Contains(program, []byte(name)) {
			t.Errorf("corpus-agent links %s: %s", name, reason)
		}
	}
}

// checkDocumentedSize checks that docs/dependencies.md gives the size of the program, within 2 %.
func checkDocumentedSize(t *testing.T, size int) {
	t.Helper()
	text, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("linux/amd64, plain[^\n]*: ([0-9,]+) bytes").FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/dependencies.md does not give the size of corpus-agent in bytes")
	}
	documented, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), ",", ""))
	if err != nil || max(size-documented, documented-size) > size/50 {
		t.Errorf("docs/dependencies.md gives %s bytes for corpus-agent, which has %d: measure its tables again",
			found[1], size)
	}
}

// TestBuildsAreReproducible checks that no build uses flags that change the program: `go install` gives the released
// one.
func TestBuildsAreReproducible(t *testing.T) {
	for _, file := range []string{"../Makefile", "../goreleaser.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`gcflags|asmflags|go build [^\n]*-tags|(?m)^\s+tags:`).FindAllString(string(text),
			-1); found != nil {
			t.Errorf("%s has %q", file, found)
		}
	}
}
