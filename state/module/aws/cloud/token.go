package cloud

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Token returns the token of the request that makes a resource. AWS makes only one resource for the requests with one
// token, so that a request of this run which is sent again cannot make a second one. Another run has other tokens: a
// resource that was deleted since is made again.
func (c *Cloud) Token(resource string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nonce == "" {
		c.nonce = rand.Text()
	}
	sum := sha256.Sum256([]byte(c.nonce + " " + resource))
	return hex.EncodeToString(sum[:])
}
