package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// redactor returns a Redactor of secrets.
func redactor(secrets ...string) *redact.Redactor {
	r := &redact.Redactor{}
	r.Add(secrets...)
	return r
}

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	const secret = "pa$$ w'rd/\"1\\2\"<&é"
	inJSON, _ := json.Marshal(map[string]string{"password": secret})
	for name, text := range map[string]string{
		"plain":         "password is " + secret + ", it says",
		"alone":         secret,
		"query":         "https://h/?q=" + url.QueryEscape(secret),
		"path":          "https://h/" + url.PathEscape(secret) + "/x",
		"user":          (&url.URL{Scheme: "ftp", User: url.UserPassword("u", secret), Host: "h"}).String(),
		"JSON":          string(inJSON),
		"Go":            fmt.Sprintf("%q", secret),
		"shell":         "mysql -p'" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
		"double quotes": `mysql -p"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`).Replace(secret) + `"`,
		"base64":        base64.StdEncoding.EncodeToString([]byte(secret)),
		"basic auth":    "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret)),
		"longer user":   "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("user1:"+secret+" and more")),
		"odd user":      base64.URLEncoding.EncodeToString([]byte("use:" + secret)),
		"hexadecimal":   fmt.Sprintf("%x", secret),
		"upper case":    fmt.Sprintf("%X", secret),
		"HTML":          html.EscapeString(secret),
		"Python's HTML": strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "'", "&#x27;").Replace(secret),
		"JSON in JSON":  fmt.Sprintf("%q", string(inJSON)),
		"JSON in HTML":  html.EscapeString(string(inJSON)),
		"URL in URL":    url.QueryEscape(url.QueryEscape(secret)),
	} {
		got := redactor(secret).Text(text)
		if !strings.Contains(got, redact.Mark) {
			t.Errorf("%s: %q is shown as %q", name, text, got)
		}
		for at := 0; at+8 < len(secret); at++ {
			if strings.Contains(got, secret[at:at+8]) {
				t.Errorf("%s: %q still shows %q", name, got, secret[at:at+8])
			}
		}
	}
}

func TestOverlappingSecretsAreRedactedAsOne(t *testing.T) {
	for _, secrets := range [][]string{{"hunter2", "hunter2-and-more"}, {"hunter2-and-more", "hunter2"},
		{"hunter2-and", "2-and-more"}} {
		if got := redactor(secrets...).Text("x hunter2-and-more y"); got != "x "+redact.Mark+" y" {
			t.Errorf("%q: %q", secrets, got)
		}
	}
}

func TestLinesOfASecretAreSecrets(t *testing.T) {
	key := "-----BEGIN KEY-----\nMC4CAQAwBQYDK2Vw\r\nBCIEIJ1hsZ3v/VpguoRK\n-----END KEY-----\n"
	got := redactor(key).Text("line 2: MC4CAQAwBQYDK2Vw and line 3: BCIEIJ1hsZ3v/VpguoRK")
	if got != "line 2: <secret> and line 3: <secret>" {
		t.Error(got)
	}
}

func TestNumbersMadeOfSecretsAreRedacted(t *testing.T) {
	r := redactor("0471155", "4711")
	v := value.NewMap("pin", 4711, "code", 471155, "float", 4711.0, "port", 80, "yes", true, "text", "code 471155")
	got := fmt.Sprint(r.Value(v))
	if strings.Contains(got, "4711") {
		t.Errorf("a number shows a secret: %s", got)
	}
	for _, kept := range []string{"80"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is redacted: %s", kept, got)
		}
	}
	if fmt.Sprint(v.Value("pin")) != "4711" {
		t.Error("the value itself was changed")
	}
}

func TestShortSecretsAreReplacedAsWords(t *testing.T) {
	r := redactor("abc", "long enough")
	if got := r.Text("abc") + r.Text(" abc\n") + r.Text("abcd"); got != redact.Mark+redact.Mark+"abcd" {
		t.Error(got)
	}
}

func TestErrorsKeepTheirType(t *testing.T) {
	r := redactor("hunter22")
	err := r.Error(diag.Internal.Hint(fmt.Errorf("opening hunter22: %w", fs.ErrPermission), "chmod hunter22"))
	if !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error()+diag.HintOf(err), "hunter22") {
		t.Errorf("%v, %s", err, diag.HintOf(err))
	}
	list := diag.List{{Pos: diag.Pos{File: "a.sls", Line: 3}, Message: "no hunter22", Hint: "see hunter22",
		Excerpt: "> 3 | hunter22"}}
	var shown diag.List
	if !errors.As(r.Error(fmt.Errorf("reading: %w", list)), &shown) || shown[0].Pos.Line != 3 ||
		strings.Contains(shown[0].Text(), "hunter22") {
		t.Errorf("%+v", shown)
	}
	if plain := errors.New("nothing to redact"); r.Error(plain) != plain {
		t.Error("an error without secrets was changed")
	}
}

func TestURLsShowNoCredentials(t *testing.T) {
	for in, want := range map[string]string{
		"fetching https://user:pass@host/x failed":            "fetching https://<secret>@host/x failed",
		"https://TOKEN@github.com/a/b":                        "https://<secret>@github.com/a/b",
		"git+https://u:p@h/r.git@v1":                          "git+https://<secret>@h/r.git@v1",
		"https://u:Pl/ain@h/x":                                "https://<secret>@h/x",
		"https://u:Pl%ain@h/x":                                "https://<secret>@h/x",
		"https://u:p@ss@h/x":                                  "https://<secret>@h/x",
		"ssh://git@host/repo":                                 "ssh://git@host/repo",
		"git@host:repo":                                       "git@host:repo",
		"https://host:8080/logo@2x.png":                       "https://host:8080/logo@2x.png",
		"https://[::1]:80/a@b":                                "https://[::1]:80/a@b",
		"https://h/x?a=1&sig=abc%2F1&b=2":                     "https://h/x?a=1&sig=<secret>&b=2",
		"https://h/x?a=<secret>&password=plain&b=2":           "https://h/x?a=<secret>&password=<secret>&b=2",
		"https://h/<secret>/x?sig=ab<secret>cd refused":       "https://h/<secret>/x?sig=<secret> refused",
		"https://user:<secret>@h/x?token=<secret>&key=plain":  "https://<secret>@h/x?token=<secret>&key=<secret>",
		"see <https://h/x?sig=plain> or <b>":                  "see <https://h/x?sig=<secret>> or <b>",
		"https://h/?X-Amz-Credential=A&X-Amz-Signature=b&c=d": "https://h/?X-Amz-Credential=<secret>&X-Amz-Signature=<secret>&c=d",
		"https://h/?access_token=t#f":                         "https://h/?access_token=<secret>#f",
		"https://h/?keyword=x&monkey=y":                       "https://h/?keyword=x&monkey=y",
		"two: https://a:b@c/ and postgres://u:p@db:5432/x?key=k1": "two: https://<secret>@c/ and " +
			"postgres://<secret>@db:5432/x?key=<secret>",
		"no URL: user:pass@host":                       "no URL: user:pass@host",
		"ftp://u:Pl/ain@h/x and sftp://u:Pl%ain@h":     "ftp://<secret>@h/x and sftp://<secret>@h",
		"ssh://git:Pl/ain@h:22/x":                      "ssh://<secret>@h:22/x",
		"https://h/x?SIG=abc;Token=d":                  "https://h/x?SIG=<secret>;Token=<secret>",
		"https://h/x?sv=2&sig=a%3D%3D":                 "https://h/x?sv=2&sig=<secret>",
		"s3://AKIA1@bucket/x":                          "s3://<secret>@bucket/x",
		"cloning 'git:Plain@host:org/repo.git' failed": "cloning '<secret>@host:org/repo.git' failed",
		"scp u:Pl/ain@h.example:/srv/x .":              "scp <secret>@h.example:/srv/x .",
		"u:Pl%ain@[::1]:path":                          "<secret>@[::1]:path",
		"git@host:repo and redis 10.0.0.1:6379@16379":  "git@host:repo and redis 10.0.0.1:6379@16379",
		"python:3.12@sha256:0123":                      "python:3.12@sha256:0123",
		"registry:5000/app@sha256:0123":                "registry:5000/app@sha256:0123",
	} {
		if got := redact.URLs(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestLogins checks that a URL is separated into one without credentials, for the arguments of a program, and the
// credentials.
func TestLogins(t *testing.T) {
	for in, want := range map[string][3]string{
		"https://h/x":                 {"https://h/x", "", ""},
		"https://u:Plain@h/x":         {"https://h/x", "u", "Plain"},
		"https://u:Pl%2Fain@h:8443/x": {"https://h:8443/x", "u", "Pl/ain"},
		"https://u:Pl/ain@h/x":        {"https://h/x", "u", "Pl/ain"},
		"HTTP://u:Pl%ain@h/x":         {"HTTP://h/x", "u", "Pl%ain"},
		"https://u:p@ss@h/x":          {"https://h/x", "u", "p@ss"},
		"https://TOKEN@h/x":           {"https://h/x", "TOKEN", ""},
		"ssh://git@h/x":               {"ssh://git@h/x", "", ""},
		"ssh://git:Plain@h/x":         {"ssh://git@h/x", "git", "Plain"},
		"https://h:8080/a@b":          {"https://h:8080/a@b", "", ""},
		"git@h:x":                     {"git@h:x", "", ""},
		"/srv/git/x@y":                {"/srv/git/x@y", "", ""},
	} {
		without, user, password := redact.Login(in)
		if got := [3]string{without, user, password}; got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestControlsCannotReachATerminal(t *testing.T) {
	in := "a\x1b]52;c;aGk=\x07b\x1b[2Jc\r\nd\re\x9bf\u202eg\tü\n"
	want := `a\x1b]52;c;aGk=\x07b\x1b[2Jc` + "\n" + `d\x0de\x9bf\u202eg` + "\tü\n"
	if got := redact.Controls(in); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if plain := "plain, ünïcode\n"; redact.Controls(plain) != plain {
		t.Error("a harmless text was changed")
	}
}

func TestNilRedactorKeepsText(t *testing.T) {
	var r *redact.Redactor
	if r.Text("a") != "a" || r.Value(1) != 1 || r.In("a") || r.Error(fs.ErrExist) != fs.ErrExist {
		t.Error("a nil Redactor changed something")
	}
}

// TestSecretsAreFoundAcrossLines checks secrets in text that base64(1), openssl(1) or an indenting printer wrapped.
func TestSecretsAreFoundAcrossLines(t *testing.T) {
	const secret = "a-secret-that-is-so-long-that-its-base64-takes-several-lines-and-then-some-more-of-it"
	r := redactor(secret)
	for before := range 3 {
		full := base64.StdEncoding.EncodeToString([]byte("u:p"[:before] + secret + "\n"))
		for _, width := range []int{64, 76} {
			for _, feed := range []string{"\n", "\r\n", `\n`, "\n        "} {
				var text strings.Builder
				for from := 0; from < len(full); from += width {
					text.WriteString(full[from:min(from+width, len(full))] + feed)
				}
				got := r.Text("first line\n" + text.String() + "last line")
				if !strings.HasPrefix(got, "first line\n") || !strings.HasSuffix(got, "last line") ||
					len(got) > len("first line\nlast line")+len(redact.Mark)+20 {
					t.Errorf("%d bytes before the secret, width %d, line feed %q: %q", before, width, feed, got)
				}
			}
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("before ", "hunter22", " after")
	f.Add("", "ab\ncdefg", "cdefg")
	f.Add("\xff", "\x00\x00\x00\x00\x00", "\x00")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		r := redactor(secret)
		got := r.Text(before + secret + after)
		if trimmed := strings.TrimSpace(secret); len(trimmed) >= redact.Shortest && !strings.Contains(redact.Mark, trimmed) &&
			strings.Contains(strings.ReplaceAll(got, redact.Mark, "\x00\x00"), secret) && !strings.Contains(secret, "\x00") {
			t.Errorf("%q is in %q", secret, got)
		}
		redact.Controls(redact.URLs(got))
	})
}

func BenchmarkText(b *testing.B) {
	r := &redact.Redactor{}
	for i := range 100 {
		r.Add(fmt.Sprintf("secret number %d of the pillar", i))
	}
	text := strings.Repeat("a line of a report that holds none of them, as nearly all do\n", 16)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}

func TestWriterEscapesForeignSequences(t *testing.T) {
	in := "\x1b[31merror:\x1b[0m ü\u202e \x1b]52;c;aGk=\x07 \x1b[2J\x1b[8m \u009b \x9b a\r\nb\rc\u2028\x1b[3"
	for _, colours := range []bool{false, true} {
		want := `ü\u202e \x1b]52;c;aGk=\x07 \x1b[2J\x1b[8m \x9b \x9b a` + "\n" + `b\x0dc\u2028\x1b[3`
		if colours {
			want = "\x1b[31merror:\x1b[0m " + want
		} else {
			want = `\x1b[31merror:\x1b[0m ` + want
		}
		for size := 1; size <= len(in); size++ { // for all sizes of writes
			var out strings.Builder
			w := redact.NewWriter(&out, colours)
			for rest := in; rest != ""; rest = rest[min(size, len(rest)):] {
				if n, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Fatalf("in writes of %d bytes: %q, want %q", size, out.String(), want)
			}
		}
	}
}

func TestRedactedJSONKeepsStrings(t *testing.T) {
	in := map[string]string{"a\u202e\u009b": "b\x7f\u2066\u2028\x1b\r\nü"}
	document, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	shown := redact.JSON(string(document))
	if redact.Controls(shown) != shown {
		t.Errorf("%q", shown)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(shown), &back); err != nil || !maps.Equal(back, in) {
		t.Errorf("%v %v", back, err)
	}
}

// TestSecretsAsPythonWritesThem checks secrets in the forms in which Python modules print, log and dump them, and as
// bytes and numbers in data.
func TestSecretsAsPythonWritesThem(t *testing.T) {
	r := &redact.Redactor{}
	r.Add("pässwörtér-geheim", `it'sA"quo\\te`, "8273645", "clé😀secret")
	for _, text := range []string{
		`"p\u00e4ssw\u00f6rt\u00e9r-geheim"`, `'p\xe4ssw\xf6rt\xe9r-geheim'`, `b'p\xc3\xa4ssw\xc3\xb6rt\xc3\xa9r-geheim'`,
		`'it\'sA"quo\\\\te'`, `"it'sA\"quo\\\\te"`, `'cl\xe9\U0001f600secret'`, `"cl\u00e9\ud83d\ude00secret"`,
	} {
		if got := r.Text("cannot connect with " + text + "."); strings.Contains(got, "quo") ||
			strings.Contains(got, "geheim") ||
			strings.Contains(got, "secret\"") || strings.Contains(got, "secret'") {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	data := value.NewMap("b", []byte("pw=pässwörtér-geheim"), "f", 8273645.0, "n", 5.5, "plain", []byte("plain"))
	got, ok := r.Value(data).(*value.Map)
	if !ok || string(got.Value("b").([]byte)) != "pw="+redact.Mark || got.Value("f") != redact.Mark ||
		got.Value("n") != 5.5 ||
		string(got.Value("plain").([]byte)) != "plain" {
		t.Errorf("%s is shown as %s", value.Repr(data), value.Repr(got))
	}
}

// TestRedactedKeysStayApart redacts a mapping whose keys hold secrets: each keeps its value.
func TestRedactedKeysStayApart(t *testing.T) {
	r := &redact.Redactor{}
	r.Add("first-secret", "second-secret")
	got := value.Repr(r.Value(value.NewMap("first-secret", 1, "second-secret", 2, redact.Mark, 3)))
	want := value.Repr(value.NewMap(redact.Mark, 1, redact.Mark+" (2)", 2, redact.Mark+" (3)", 3))
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
