package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// Secrets of a workstation. Each is a unique text.
const (
	canarySecret     = "c4nary+secret/key0123456789"
	canaryToken      = "c4naryOfTheSession0123456789=="
	canaryLogin      = "c4naryOfTheURL"
	canarySigned     = "c4naryOfTheSignedURL"
	canaryPassphrase = "c4nary of the passphrase"
	canaryKey        = "c4nary-of-a-private-key"
)

// workstationCanaries returns the texts to search for, in the forms in which a server gets or returns them.
func workstationCanaries() []string {
	var all []string
	for _, c := range []string{canarySecret, canaryToken, canaryLogin, canarySigned, canaryPassphrase, canaryKey} {
		all = append(all, c, url.QueryEscape(c), base64.StdEncoding.EncodeToString([]byte(c)))
	}
	return append(all, base64.StdEncoding.EncodeToString([]byte("deploy:"+canaryLogin)))
}

// obeyedHere contains characters that control a terminal.
const obeyedHere = "\x1b]52;c;aGk=\x07\x1b[2J\u009b31m\u202e\u2066\x7f\b\r"

// workstationLines returns command lines of all commands. @ represents the workstation's directory, % a text that
// controls a terminal.
func workstationLines() []string {
	return []string{
		"keys new --keys @other", "keys new %", "keys ls", "keys ls --keys @none", "keys use myapp awskms:%",
		"keys use targets awskms:arn:aws:kms:x", "keys rotate targets", "keys rotate %",
		"store init", "init @fresh --kind static", "init % --kind go --name %", "check @tree", "check @tree --grains %",
		"check % --format %", "build @tree -o @x.tar.zst", "build @% -o @x.tar.zst",
		"build https://deploy:" + canaryLogin + "@127.0.0.1:1/x.git?sig=" + canarySigned + " -o @x.tar.zst",
		"publish myapp 1.0 @one.tar.zst --channel testing", "publish myapp % @one.tar.zst",
		"promote myapp testing production", "promote myapp % production",
		"point myapp testing 1.0", "point myapp testing %", "attest myapp testing", "attest myapp testing 1.0",
		"attest myapp % --renew", "yank myapp 1.0 --reason %", "yank myapp 1.0 --undo",
		"host ls", "host ls --conflicts", "host show %", "host forget %", "host forget myapp-testing-1 --key %",
		"history myapp", "history % --json",
		"doctor", "ls", "ls --why", "ls %", "diff myapp 1.0 testing", "diff myapp % 1.0", "verify", "verify -v", "gc",
		"gc --dry-run", "project add shop --key @keys/root.json",
		"project add % --key %", "project revoke myapp --key %", "project remove %", "project remove shop",
		"project require myapp production --from testing", "project require myapp % --none", "root show",
		"root change --renew", "root change --add-key root=%",
		"refresh", "refresh --rebuild", "export root -o @draft", "export % -o @draft", "sign @draft", "sign @draft --show",
		"sign @%", "import @draft", "import @%",
		"bootstrap", "push host.invalid %", "push % myapp",
		"push web1 shop --guest", "push % shop --guest", "push web1 shop --cloud %", "store upgrade", "store upgrade --force",
		"version", "version %",
		"fleet", "fleet --project %", "project rollout myapp testing --halt-at 2", "project rollout myapp %",
		"rollout simulate --hosts 20", "rollout simulate --hosts %", "rollout status myapp testing", "rollout status myapp %",
		"rollout pause myapp testing", "rollout resume myapp testing", "rollout skip-wave myapp testing",
		"rollout abort myapp testing", "rollout back myapp testing", "rollout watch myapp testing", "rollout watch % testing",
		"node ls", "node add n1 --mode prod --region eu1 --yes", "node add % --mode % --region % --yes", "node info n1",
		"node info %",
		"node mode n1 staging --dry-run", "node mode % % --yes",
		"node set n1 --slots 30 --dry-run", "node rm n1 --dry-run", "node rm % --yes",
		"node domain % --yes",
		"node ls --cloud %", "guest ls", "guest ls --node %", "guest info %",
		"guest create % --project % --env % --image % --yes",
		"guest create web1 --project shop --env prod --image % --ssh-key @keys/root.json --yes", "guest delete % --yes",
		"guest move % % --yes", "guest move web1 n2 --copy --yes", "guest drop % % --yes", "guest trim % % --yes",
		"node evacuate % --off --yes", "node init n1 % --yes", "node init % host.invalid --yes",
		"node init n1 host.invalid --agent @one.tar.zst --yes", "node init n1 host.invalid --environment %",
		"node open % --yes", "trim % % % %",
		"guest enlarge % % --yes", "guest name add % %", "guest name rm % %", "guest ssh-key add % @%",
		"guest ssh-key rm % %",
		"guest image % % % --yes", "computenode_list %", "computenode_infos % %", "computenode_switchmode % % %",
		"guest_delete % %", "enlarge % % % %",
		"guest create web1 --project shop --env prod --image % --contact % --yes",
		"guest backup % --repository % --path % --keep % --yes", "guest backup web1 --off --yes",
		"guest class ls", "guest class info %", "guest class set % --project % --env % --image % --min 1 --max 2 --yes",
		"guest class rm % --yes", "dev ls --dir @%", "dev down --dir @% --dry-run",
		"dev up % --dir @% --rootfs @none --dry-run",
		"access ls", "access ls --project %", "access grant % % --ssh-key @% --name % --sudo % --yes",
		"access grant alice shop --ssh-key @keys/root.json --yes", "access revoke % --yes", "access revoke % % --yes",
		"orchestrate --tree @none %", "nosuch", "ls --%",
	}
}

// TestEveryCommandIsSwept compares the lines with the existing commands.
func TestEveryCommandIsSwept(t *testing.T) {
	var look func(c *cobra.Command, path string)
	look = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			look(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
		if c.Runnable() && !slices.ContainsFunc(workstationLines(),
			func(line string) bool { return strings.HasPrefix(line+" ", path+" ") }) {
			t.Errorf("workstationLines has no line for corpus %s", path)
		}
	}
	look((&program{IO: cli.Process()}).root(), "")
}

// quoting responds as servers do that quote requests in their errors, and with more details.
func quoting(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		account, password, _ := r.BasicAuth()
		quoted := fmt.Sprintf("%s %s %v login %s:%s %s", r.Method, r.URL, r.Header, account, password,
			"https://x/?X-Amz-Signature="+canarySigned+"&X-Amz-Security-Token="+url.QueryEscape(canaryToken))
		known := r.Header.Get("Authorization") + password + r.URL.Query().Get("sig")
		if strings.HasPrefix(r.URL.Path, "/bucket") { // S3 has the secret of the account
			known, quoted = canarySecret, canarySecret+" "+quoted
		}
		w.Header().Set("X-Amz-Request-Id", known)
		w.Header().Set("X-Amz-Bucket-Region", known)
		code, status, _ := strings.Cut(kind, " ")
		switch code {
		case "plain":
			http.Error(w, quoted+obeyedHere, http.StatusForbidden)
		case "redirect":
			w.Header().Set("Location", "http://deploy:"+canaryLogin+"@127.0.0.1:1/?X-Amz-Signature="+canarySigned+
				"&X-Amz-Security-Token="+url.QueryEscape(canaryToken))
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "malformed":
			_, _ = io.WriteString(w, "<ListBucketResult><"+quoted+obeyedHere)
		case "listing":
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w,
				"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/%s</Key><Size>x%s</Size></Contents></"+
					"ListBucketResult>", html.EscapeString(quoted), html.EscapeString(quoted))
		default:
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(map[string]int{"403": 403, "400": 400, "500": 500}[status])
			fmt.Fprintf(w,
				"<Error><Code>%s</Code><Message>&#27;]52; %s</Message><CanonicalRequest>%s</CanonicalRequest></Error>", code,
				html.EscapeString(quoted), html.EscapeString(quoted))
		}
	}
}

// TestServersDoNotMakeCommandsShowSecrets runs commands against servers that quote credentials and signed URLs, and
// send terminal control characters, in all responses, and checks the output of each command.
func TestServersDoNotMakeCommandsShowSecrets(t *testing.T) {
	artifacttest.Long(t)
	artifacttest.Long(t)
	for _, kind := range []string{"AccessDenied 403", "SignatureDoesNotMatch 403", "InvalidToken 400", "NoSuchKey 400",
		"\x1b[2J" + canaryToken + " 403", "InternalError 500", "plain", "redirect", "malformed", "listing"} {
		server := httptest.NewServer(quoting(kind))
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		for _, store := range []string{
			"s3://bucket/p?endpoint=" + server.URL, "minio://" + host + "/bucket/p?tls=0", server.URL + "/p",
			"http://deploy:" + canaryLogin + "@" + host + "/p", server.URL + "/p?sig=" + canarySigned,
			"s3://bucket/p?endpoint=http://deploy:" + canaryLogin + "@" + host,
		} {
			s := newShellWithSecrets(t)
			s.env["CORPUS_STORE"] = store
			for _, line := range []string{"ls", "verify", "store init", "publish myapp 1.1 @one.tar.zst --channel testing",
				"attest myapp testing", "gc", "refresh", "ls --json", "gc --json", "root show", "bootstrap"} {
				s.runAndCheck(kind+" from "+store, line)
			}
		}
	}
}

// TestCommandsShowNoSecretsAndControlNoTerminal runs each command with a store, keys and reports of hosts that contain
// terminal control characters, and an environment with secrets, and checks its output.
func TestCommandsShowNoSecretsAndControlNoTerminal(t *testing.T) {
	s := newShellWithSecrets(t)
	for round, env := range []map[string]string{{}, {"CORPUS_KEY_TARGETS": canaryKey + obeyedHere,
		"CORPUS_KEY_MYAPP": "{\"keyval\": \"" + canaryKey + "\"}",
		"CORPUS_KEY_ROOT":  "age-encryption.org/v1\n" + canaryKey}} {
		maps.Copy(s.env, env)
		for _, line := range workstationLines() {
			s.runAndCheck(fmt.Sprint("round ", round), line)
			s.runAndCheck(fmt.Sprint("round ", round), line+" --json")
		}
	}
}

// newShellWithSecrets returns a workstation with secrets, and a store to which hosts with hostile reports write.
func newShellWithSecrets(t *testing.T) *shell {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": canarySecret, "AWS_SESSION_TOKEN": canaryToken,
		"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true",
		"MINIO_ACCESS_KEY": "", "MINIO_SECRET_KEY": "", "MINIO_ROOT_USER": "", "MINIO_ROOT_PASSWORD": "",
		"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none",
	} {
		t.Setenv(name, value)
	}
	s := newStore(t)
	s.env["CORPUS_PASSPHRASE"] = canaryPassphrase
	if err := os.MkdirAll(s.path("tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("tree/corpus.yaml", "project: \"a\\e[2J\\u202e\"\nversion: [")
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	report, err := json.Marshal(map[string]any{
		"id": "20260101T000000Z-" + obeyedHere, "host": "web" + obeyedHere, "service": "myapp", "instance": "testing",
		"outcome": "rolled back" + obeyedHere, "exit_code": 7,
		"error": "x" + obeyedHere, "agent": obeyedHere,
		"channels": []map[string]string{{"Project": "myapp", "Channel": "testing" + obeyedHere}},
		"unserved": []string{obeyedHere},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"web-1", "web\x1b[2J\u202e"} {
		dir := filepath.Join("store/reports/myapp", host)
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(dir, "20260101T000000Z-a.json"), string(report))
		s.write(filepath.Join(dir, "x"+obeyedHere), "no report")
	}
	return s
}

// runAndCheck runs a command and checks each byte of its output.
func (s *shell) runAndCheck(where, line string) {
	s.t.Helper()
	var words []string
	for _, word := range strings.Fields(line) {
		words = append(words, strings.ReplaceAll(word, "%", obeyedHere))
	}
	s.runWords(append(words, "--retry", "1ms"))
	for _, output := range []string{s.out, s.err} {
		for _, canary := range workstationCanaries() {
			if strings.Contains(output, canary) {
				s.t.Errorf("%q: corpus %s prints %s:\n%.900s", where, line, canary, output)
			}
		}
		if at := strings.IndexFunc(output, controlling); at >= 0 {
			s.t.Errorf("%q: corpus %s writes %q:\n%.900q", where, line, output[at:min(at+8, len(output))], output)
		}
	}
	if strings.HasSuffix(line, "--json") && s.out != "" && !json.Valid([]byte(s.out)) {
		s.t.Errorf("%q: corpus %s writes no JSON document:\n%.900s", where, line, s.out)
	}
}

func controlling(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == unicode.ReplacementChar
}
