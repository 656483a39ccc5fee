package artifact_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
)

func TestDocumentsThatTwoReadersReadDifferentlyAreRefused(t *testing.T) {
	for document, wrong := range map[string]string{
		`{"a":1,"a":2}`: `"a" is there twice`, `{"signed":{"version":1,"x":[{}],"version":2}}`: `"version" is there twice`,
		`{"a":1,"\u0061":2}`: "twice", `{"signed":{},"Signed":{}}`: "twice", `{"signed":{"version":1,"VERSION":2}}`: "twice",
		`{"x":{"y":{"z":[{"k":1,"k":1}]}}}`: "twice", `{"a":1e3}`: "integer", `{"a":[1.0]}`: "integer", `{"a":-0}`: "integer",
		`{"a":1234567890123456789012}`: "integer", "{\"a\":\"\xff\"}": "UTF-8",
		strings.Repeat("[", 101) + strings.Repeat("]", 101): "deep",
		`{"a":`: "byte", `{"a" 1}`: "byte",
	} {
		if err := artifact.CheckJSON([]byte(document)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%.60s: %v, want %s", document, err, wrong)
		}
	}
	for _, document := range []string{
		`{"signed":{"version":1,"unknown of later agents":{"a":[1,-2,null,true,"a"]}},"signatures":[{"a":1},{"a":1}]}`,
		`{"signed":{"targets":{"x/1.0-RC":{},"x/1.0-rc":{}}}}`, `{"targets":{"x/1.0-RC":{},"x/1.0-rc":{}}}`, `[]`, `"a"`,
		`{"a":{"b":1},"b":{"a":1}}`,
	} {
		if err := artifact.CheckJSON([]byte(document)); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}
