// Hello answers with a line of text.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	address := os.Getenv("HELLO_ADDRESS")
	if address == "" {
		address = "127.0.0.1:8000"
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	log.Fatal(http.ListenAndServe(address, nil))
}
