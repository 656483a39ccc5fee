package hostkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnsigned is the error of an object without a signature.
var ErrUnsigned = errors.New("it is not signed")

// mark is the start of the field that Seal adds. The field is the last one of the object, so the signed text is
// everything before the last occurrence of mark.
const mark = `,"signed":{`

// purpose is a prefix that is signed as well, so that the signature is not valid for anything else.
const purpose = "corpus: a host says, 1\n"

// signed is the field that Seal adds.
type signed struct {
	By  Public `json:"by"`
	Sig string `json:"sig"` // of purpose, the object's key in the store, a line feed, and the object without this field
}

// Seal adds to a JSON object the field "signed", with the host's signature of the object and of its place, which is its
// key in the store. A copy in another place has no valid signature.
func (k Key) Seal(place string, object []byte) ([]byte, error) {
	object = bytes.TrimSpace(object)
	if len(object) < 3 || object[0] != '{' || object[len(object)-1] != '}' {
		return nil, errors.New("only a JSON object with fields can be signed")
	}
	sig := ed25519.Sign(k.private, message(place, object))
	field, err := json.Marshal(signed{k.Public(), base64.RawURLEncoding.EncodeToString(sig)})
	if err != nil {
		return nil, err
	}
	sealed := append([]byte{}, object[:len(object)-1]...)
	sealed = append(sealed, mark...)
	return append(append(sealed, field[1:]...), '}'), nil
}

// Unseal returns the key that signed an object that a store has in a place. It returns ErrUnsigned for an object
// without a signature, and another error for an invalid signature.
func Unseal(place string, sealed []byte) (Public, error) {
	sealed = bytes.TrimSpace(sealed)
	at := bytes.LastIndex(sealed, []byte(mark))
	if at < 0 || sealed[len(sealed)-1] != '}' {
		return "", ErrUnsigned
	}
	var s signed
	if err := json.Unmarshal(sealed[at+len(mark)-1:len(sealed)-1], &s); err != nil {
		return "", fmt.Errorf("reading its signature: %w", err)
	}
	if _, err := ParsePublic(string(s.By)); err != nil {
		return "", err
	}
	public, _ := base64.RawURLEncoding.DecodeString(string(s.By)) // checked above
	sig, err := base64.RawURLEncoding.Strict().DecodeString(s.Sig)
	if err != nil {
		return "", fmt.Errorf("reading its signature: %w", err)
	}
	object := append(bytes.Clone(sealed[:at]), '}')
	if !ed25519.Verify(public, message(place, object), sig) {
		return "", fmt.Errorf("its signature is not valid for %s", place)
	}
	return s.By, nil
}

func message(place string, object []byte) []byte {
	return append([]byte(purpose+place+"\n"), object...)
}

// said is the prefix of a text that a host signs apart from an object, so that the signature of a text is never valid
// for an object.
const said = "corpus: a host says in a name, 1\n"

// Sign returns the signature of a text in unpadded base64 for URLs, as names of objects have it.
func (k Key) Sign(text string) string {
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, []byte(said+text)))
}

// Signed reports whether this key made a signature of a text with Sign.
func (p Public) Signed(text, signature string) bool {
	public, err := base64.RawURLEncoding.Strict().DecodeString(string(p))
	sig, malformed := base64.RawURLEncoding.Strict().DecodeString(signature)
	return err == nil && malformed == nil && len(public) == ed25519.PublicKeySize &&
		ed25519.Verify(public, []byte(said+text), sig)
}
