package tuf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"
)

// The types of keys. The specification calls ECDSA keys "ecdsa-sha2-nistp256"; python-tuf and others write "ecdsa".
const (
	typeEd25519   = "ed25519"
	typeECDSA     = "ecdsa"
	typeECDSASpec = "ecdsa-sha2-nistp256"
	typeRSA       = "rsa"

	schemeP384 = "ecdsa-sha2-nistp384"
)

// NewKey returns the description of a public key: Ed25519, ECDSA P-256 or RSA.
func NewKey(public crypto.PublicKey) (*Key, error) {
	switch k := public.(type) {
	case ed25519.PublicKey:
		return &Key{Type: typeEd25519, Scheme: typeEd25519, Value: KeyVal{PublicKey: hex.EncodeToString(k)}}, nil
	case *ecdsa.PublicKey:
		return pemKey(k, typeECDSA, "ecdsa-sha2-nistp256")
	case *rsa.PublicKey:
		return pemKey(k, typeRSA, "rsassa-pss-sha256")
	}
	return nil, fmt.Errorf("a key of type %T signs no metadata", public)
}

func pemKey(public crypto.PublicKey, kind, scheme string) (*Key, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return &Key{Type: kind, Scheme: scheme, Value: KeyVal{PublicKey: string(text)}}, nil
}

// ID returns the key's ID in metadata, the digest of its canonical form.
func (k *Key) ID() (string, error) {
	data, err := cjson.EncodeCanonical(k)
	if err != nil {
		return "", fmt.Errorf("the ID of a key: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// public parses the key, which must have the type that it claims.
func (k *Key) public() (crypto.PublicKey, error) {
	switch k.Type {
	case typeEd25519:
		raw, err := hex.DecodeString(k.Value.PublicKey)
		if err == nil && len(raw) != ed25519.PublicKeySize {
			err = fmt.Errorf("it has %d bytes", len(raw))
		}
		if err != nil {
			return nil, fmt.Errorf("an Ed25519 key: %w", err)
		}
		return ed25519.PublicKey(raw), nil
	case typeECDSA, typeECDSASpec:
		return ofPEM[*ecdsa.PublicKey](k.Value.PublicKey)
	case typeRSA:
		return ofPEM[*rsa.PublicKey](k.Value.PublicKey)
	}
	return nil, fmt.Errorf("there are no keys of type %q", k.Type)
}

func ofPEM[K crypto.PublicKey](text string) (crypto.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("a public key is not in PEM")
	}
	var public any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		err = fmt.Errorf("a PEM block of type %q is not a public key", block.Type)
	}
	if err != nil {
		return nil, err
	}
	key, ok := public.(K)
	if !ok {
		return nil, fmt.Errorf("a key is %T, and not of the kind it says", public)
	}
	return key, nil
}

// signed reports whether a signature of a message was made with this key.
func (k *Key) signed(public crypto.PublicKey, message, signature []byte) bool {
	switch public := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, message, signature)
	case *ecdsa.PublicKey:
		return verifyECDSA(public, k.digest(message), signature)
	case *rsa.PublicKey:
		sum := sha256.Sum256(message)
		return rsa.VerifyPSS(public, crypto.SHA256, sum[:], signature, nil) == nil
	}
	return false
}

// digest returns the digest of a message that an ECDSA key signs, by the scheme of the key.
func (k *Key) digest(message []byte) []byte {
	if k.Scheme == schemeP384 {
		sum := sha512.Sum384(message)
		return sum[:]
	}
	sum := sha256.Sum256(message)
	return sum[:]
}

// mostECDSA is the length in bytes of the longest signature in the form of two plain numbers, that of P-521.
const mostECDSA = 132

// verifyECDSA accepts signatures in ASN.1, and those of hardware that writes the two plain numbers (IEEE P1363).
func verifyECDSA(public *ecdsa.PublicKey, digest, signature []byte) bool {
	if ecdsa.VerifyASN1(public, digest, signature) {
		return true
	}
	if n := len(signature); n == 0 || n > mostECDSA || n%2 != 0 {
		return false
	}
	half := len(signature) / 2
	return ecdsa.Verify(public, digest, new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
}
