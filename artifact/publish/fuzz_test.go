package publish_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
)

// FuzzParseDraft parses drafts from untrusted people: the result is a draft that can be shown, or an error.
func FuzzParseDraft(f *testing.F) {
	t := &testing.T{}
	repo := artifacttest.New(t)
	for _, role := range []string{"root", "targets"} {
		d, _, err := drafts.Export(f.Context(), repo.Publisher, role)
		if err != nil {
			f.Fatal(err)
		}
		data, err := json.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(
		`{"corpus_draft":1,"role":"myapp","needs":[{"by":"x","keys":["a"],"threshold":1}],` +
			`"metadata":{"signed":{"_type":"targets"},"signatures":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := publish.ParseDraft(data)
		if err != nil {
			return
		}
		if s, err := d.Summary(); err != nil || s.Content == "" || strings.Contains(d.Role, "/") {
			t.Errorf("a draft that was read has summary %+v, %v", s, err)
		}
	})
}
