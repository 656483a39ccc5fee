package hostkey

import (
	"fmt"
	"strings"
	"testing"
)

// TestSignedTextIsNoSignedObject signs the very text that the signature of an object is made of. An attacker who has a
// host sign texts must not get signatures of objects.
func TestSignedTextIsNoSignedObject(t *testing.T) {
	key, _, err := Open(t.TempDir() + "/host.key")
	if err != nil {
		t.Fatal(err)
	}
	object := `{"a":1}`
	sealed := fmt.Sprintf(`%s%s"by":%q,"sig":%q}}`, strings.TrimSuffix(object, "}"), mark, key.Public(),
		key.Sign(string(message("place", []byte(object)))))
	if by, err := Unseal("place", []byte(sealed)); err == nil || !strings.Contains(err.Error(), "is not valid") {
		t.Errorf("%s counts as signed by %s: %v", sealed, by, err)
	}
	whole, err := key.Seal("place", []byte(object))
	if err != nil {
		t.Fatal(err)
	}
	if by, err := Unseal("place", whole); err != nil || by != key.Public() {
		t.Errorf("%s: %v", by, err)
	}
}
