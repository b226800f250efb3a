"""Verifies an exported access log: python3 verify_access_log.py FILE [SEQ HASH of an older anchor]"""
import hashlib, json, sys

seq, head, ends, count = 0, "0" * 64, {}, 0
if len(sys.argv) > 3:  # the chain begins behind this anchor: older lines were pruned
    seq, head = int(sys.argv[2]), sys.argv[3]
ends[seq] = head
for text in open(sys.argv[1], encoding="utf-8"):
    line = json.loads(text)
    if "anchor" in line:
        anchor = line["anchor"]
        if anchor["seq"] >= min(ends) and ends.get(anchor["seq"]) != anchor["hash"]:
            sys.exit(f"line {anchor['seq']} is missing or is not the one that was signed")
        continue
    body = text.rstrip("\n").rsplit(',"hash":"', 1)[0] + "}"
    if line["seq"] != seq + 1 or line["prev"] != head:
        sys.exit(f"line {line['seq']} does not follow line {seq}: lines were removed or moved")
    if hashlib.sha256(body.encode()).hexdigest() != line["hash"]:
        sys.exit(f"line {line['seq']} was changed")
    seq, head, count = line["seq"], line["hash"], count + 1
    ends[seq] = head
print(f"{count} lines, the last is {seq} with hash {head}")
