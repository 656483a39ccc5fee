package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestFiltersThatReadFiles compares filters with Salt's functions istextfile, is_binary, is_empty, list_files and
// get_hash.
func TestFiltersThatReadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"text": "a line\n", "empty": "", "zero": "a\x00b", "latin1": "gr\xfcn und blau, viel Text",
		"noise": "\xff\xfe\xfd\x01", "cyrillic": "привет", "sub/deep": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "sub", "loop")); err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]string{
		`{{ "D/text" | is_text_file }} {{ "D/empty" | is_text_file }} {{ "D/latin1" | is_text_file }} {{ "D/cyrillic" | ` +
			`is_text_file }}`: "True True True True",
		`{{ "D/zero" | is_text_file }} {{ "D/noise" | is_text_file }} {{ "D/none" | is_text_file }} {{ "D" | is_text_file }}`: "False False False False",
		`{{ "D/zero" | is_bin_file }} {{ "D/latin1" | is_bin_file }} {{ "D/noise" | is_bin_file }} {{ "D/cyrillic" | ` +
			`is_bin_file }}`: "True True True True",
		`{{ "D/text" | is_bin_file }} {{ "D/empty" | is_bin_file }} {{ "D/none" | is_bin_file }} {{ "D" | is_bin_file }}`: "False False False False",
		`{{ "D/empty" | is_empty }} {{ "D/text" | is_empty }} {{ "D/none" | is_empty }}`:                                  "True False False",
		`{{ "D/text" | file_hashsum }}`:                 "786e184927ec9ddac3079c24999ac461b7cb89888f69efc053848f2d6dee7dd6",
		`{{ "D/text" | file_hashsum("md5") | length }}`: "32",
		`{{ ("D/sub" | list_files)[:3] | join(",") }}`:  "D/sub,D/sub/deep,D/sub/loop",
		`{{ "D/none" | list_files | join(",") }}`:       "D/none",
		`{{ ("sh" | which).endswith("/sh") }}`:          "True",
		`{{ "no-such-program" | which }}`:               "None",
	} {
		t.Run(template, func(t *testing.T) {
			source := "a: '" + strings.ReplaceAll(template, "D", dir) + "'\n"
			set, _ := settings(t, map[string]string{"states/t.sls": source})
			got, err := answer(t, families.New(set), "slsutil.renderer", "salt://t.sls")
			m, ok := got.(*value.Map)
			if err != nil || !ok {
				t.Fatalf("%v, %v", got, err)
			}
			answered := strings.ReplaceAll(value.Str(m.Value("a")), dir, "D")
			if answered != want {
				t.Errorf("%s, want %s", answered, want)
			}
		})
	}
}
