// As messages.c.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"loom"
)

func some(text string) any {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func main() {
	input := bufio.NewReader(os.Stdin)
	var path string
	var model *loom.Model
	for {
		line, err := input.ReadString('\n')
		if err == io.EOF {
			return
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if fields[0] != path {
			if model != nil {
				model.Close()
			}
			path = fields[0]
			if model, err = loom.LoadModel(path, nil); err != nil {
				log.Fatal(err)
			}
		}
		options := loom.ChatOptions{Tools: some(fields[3]), Variables: some(fields[4])}
		options.NoReply = strings.Contains(fields[1], "n")
		options.ContinueFinalMessage = strings.Contains(fields[1], "c")
		text, err := model.RenderChat(json.RawMessage(fields[2]), options)
		if err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Printf("ok %x\n", text)
		}
	}
}
