package keyring

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
)

// Signer is a private key that signs, in memory or in a key management service.
type Signer interface {
	PublicKey() (crypto.PublicKey, error)
	// Sign signs a whole message, not its digest.
	Sign(message []byte) ([]byte, error)
}

type ed25519Signer ed25519.PrivateKey

func (s ed25519Signer) PublicKey() (crypto.PublicKey, error) {
	return ed25519.PrivateKey(s).Public(), nil
}

func (s ed25519Signer) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(s), message), nil
}

// ecdsaSigner signs digests of SHA-256, as P-256 keys do.
type ecdsaSigner struct{ key *ecdsa.PrivateKey }

func (s ecdsaSigner) PublicKey() (crypto.PublicKey, error) { return s.key.Public(), nil }

func (s ecdsaSigner) Sign(message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	return ecdsa.SignASN1(rand.Reader, s.key, sum[:])
}
