package procedure

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
)

// NewSSHKey creates an ed25519 key pair in the file formats of OpenSSH.
func NewSSHKey(comment string) (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making an SSH key: %w", err)
	}
	var blob bytes.Buffer
	write(&blob, []byte(keyType), pub)
	check := make([]byte, 4)
	if _, err := rand.Read(check); err != nil {
		return nil, nil, err
	}
	var secret bytes.Buffer
	secret.Write(check)
	secret.Write(check)
	write(&secret, []byte(keyType), pub, priv, []byte(comment))
	for i := byte(1); secret.Len()%8 != 0; i++ {
		secret.WriteByte(i)
	}
	var key bytes.Buffer
	key.WriteString("openssh-key-v1\x00")
	write(&key, []byte("none"), []byte("none"), nil)
	_ = binary.Write(&key, binary.BigEndian, uint32(1)) // one key; a buffer takes everything
	write(&key, blob.Bytes(), secret.Bytes())
	private = pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: key.Bytes()})
	public = fmt.Appendf(nil, "%s %s %s\n", keyType, base64.StdEncoding.EncodeToString(blob.Bytes()), comment)
	return private, public, nil
}

const keyType = "ssh-ed25519"

// write appends strings in the encoding of SSH: their length and their bytes.
func write(b *bytes.Buffer, fields ...[]byte) {
	for _, f := range fields {
		_ = binary.Write(b, binary.BigEndian, uint32(len(f)))
		b.Write(f)
	}
}
