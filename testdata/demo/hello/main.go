// Hello answers with a line of text that names its version.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"net/http"
	"os"
)

//go:embed VERSION
var version string

func main() {
	address := os.Getenv("HELLO_ADDRESS")
	if address == "" {
		address = ":8000" // in an image, which has an address of its own
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello ", version) })
	log.Fatal(http.ListenAndServe(address, nil))
}
