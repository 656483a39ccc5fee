package hostkey

import (
	"crypto/ed25519"
	"encoding/base64"
)

// placePurpose is a prefix that is signed with the name of an object, so that the signature is not valid for anything
// else.
const placePurpose = "corpus: a host names, 1\n"

// SignName returns the host's signature of the name of an object, for objects whose names contain all of their content:
// 64 bytes in unpadded base64 for URLs.
func (k Key) SignName(name string) string {
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, []byte(placePurpose+name)))
}

// SignedName reports whether this key made a signature of a name.
func (p Public) SignedName(name, signature string) bool {
	public, err := base64.RawURLEncoding.DecodeString(string(p))
	if err != nil || len(public) != ed25519.PublicKeySize {
		return false
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	return err == nil && ed25519.Verify(public, []byte(placePurpose+name), sig)
}
