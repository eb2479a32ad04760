// A service in Go: a table, tickets for two users, every event in a file.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

func ask(verb, path, body string) *json.Decoder {
	request, _ := http.NewRequest(verb, os.Getenv("HOUSE")+path, strings.NewReader(body))
	request.Header = http.Header{"Authorization": {"Bearer " + os.Getenv("KEY")}, "Content-Type": {"application/json"}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return json.NewDecoder(http.NoBody) // the server is away
	}
	if code := answer.StatusCode; code == 401 || code == 403 || code == 410 {
		text, _ := io.ReadAll(answer.Body)
		log.Fatal(string(text))
	}
	return json.NewDecoder(answer.Body)
}

type reply struct{ Table, Ticket, Message string }

func call(method, params string) reply {
	var answer struct{ Result, Error reply }
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
	if err := ask("POST", "/rpc", body).Decode(&answer); err != nil || answer.Error.Message != "" {
		log.Fatalln(method, answer.Error.Message, err)
	}
	return answer.Result
}

func main() {
	table := call("table.open", `"ref":"match-17","seats":2,"rules":{"join":"invite"}`).Table
	for _, name := range []string{"Ada", "Bob"} {
		user := fmt.Sprintf(`"table":%q,"name":%q,"subject":%[2]q`, table, name)
		ticket := call("seat.ticket", user).Ticket
		fmt.Println(name+":", os.Getenv("HOUSE")+"/tables/"+table+"#ticket="+ticket)
	}
	file, _ := os.OpenFile("events.jsonl", os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	stored, last := json.NewDecoder(file), struct{ Position string }{"start"}
	for stored.Decode(&last) == nil {
	}
	file.Truncate(stored.InputOffset()) // without half a line
	for ; ; time.Sleep(time.Second) {
		feed := ask("GET", "/feed?after="+last.Position, "")
		for text := (json.RawMessage{}); feed.Decode(&text) == nil; json.Unmarshal(text, &last) {
			fmt.Fprintf(file, "\n%s", text)
		}
	}
}
