"""Cases of `vllm_datasets.py` for datasets with media, tools or instructions, and how their rows are kept.

`python3 vllm_media.py` writes their files to `tests/fixtures`; it needs datasets, Pillow and soundfile."""

import base64
import email.parser
import email.policy
import hashlib
import io
import json
import random
import tempfile
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
COPIES = FIXTURES / "vllm_hf"
# Paths in rows are relative to `tests`, where Cargo runs the tests; the recorder has a link of this name.
HERE = "fixtures/vllm_hf"
CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
SPEECH = ["--backend", "openai-audio", "--endpoint", "/v1/audio/transcriptions"]
# Datasets around whose texts each program puts words of its own: the columns of those texts, in their order.
WORDED = {
    "instruct-coder": ("instruct_coder", ("input", "instruction")),
    "zeta": ("zeta", ("events", "input")),
    "edits": ("edits", ("code", "change_request")),
}

# ---------------------------------------------------------------- cases


def cases(seed):
    """(name, tokenizer, flags) of one seed."""

    def hub(folder, name, *more):
        return ["--dataset-name", "hf", "--dataset-path", "{FIXTURES}/vllm_hf/" + folder, "--hf-name", name, *more]

    pictures = hub("vision_chat", "lmarena-ai/VisionArena-Chat", *CHAT, "--no-stream")
    yield "hf/tiny-llama/vision-chat-whole", "tiny-llama", [*pictures, "--num-prompts", "4"]
    speech = hub("librispeech", "openslr/librispeech_asr", *SPEECH, "--no-stream")
    yield "hf/bytes/librispeech-whole", "bytes", [*speech, "--num-prompts", "3"]
    calls = hub("bfcl", "gorilla-llm/Berkeley-Function-Calling-Leaderboard", *CHAT)
    yield "hf/tools/bfcl", "tools", [*calls, "--num-prompts", "5"]
    yield "hf/tiny-llama/bfcl-more-than-there-are", "tiny-llama", [*calls, "--bfcl-categories", "multiple, simple", "--hf-output-len", "3"]
    audio = ["--dataset-name", "custom_audio", "--dataset-path", "{FIXTURES}/vllm_audio.jsonl"]
    yield "custom_audio/bytes/form", "bytes", [*audio, *SPEECH, "--num-prompts", "3"]
    yield "custom_audio/tiny-llama/template", "tiny-llama", [*audio, *SPEECH, "--custom-output-len", "-1"]
    yield "custom_audio/tiny-llama/chat", "tiny-llama", [*audio, *CHAT, "--enable-multimodal-chat", "--num-prompts", "-1"]
    films = ["--dataset-name", "sharegpt", "--dataset-path", "{FIXTURES}/vllm_sharegpt_videos.json", *CHAT]
    yield "sharegpt/tiny-llama/media", "tiny-llama", [*films, "--num-prompts", "4"]
    yield "sharegpt/bytes/media-in-messages", "bytes", [*films, "--enable-multimodal-chat", "--sharegpt-output-len", "3"]
    noise = [*CHAT, "--dataset-name", "random-mm", "--random-input-len", "10", "--random-output-len", "3", "--num-prompts", "6"]
    buckets = ["--random-mm-bucket-config", "{(16, 8, 1): 0.4, (16, 24, 3): 0.4, (32, 16, 2): 0.2}"]
    yield "random-mm/tiny-llama/videos", "tiny-llama", [*noise, *buckets, "--random-mm-base-items-per-request", "2"]
    yield "random-mm/drift/several-videos", "drift", [
        *noise, *buckets, "--random-mm-base-items-per-request", "3", "--random-mm-num-mm-items-range-ratio", "0.5",
        "--random-mm-limit-mm-per-prompt", '{"image": 1, "video": 3}', "--enable-multimodal-chat",
    ]
    if seed != 0:
        return
    for name, folder, id, more in (
        ("vision-chat", "vision_chat", "lmarena-ai/VisionArena-Chat", CHAT),
        ("vision-bench", "vision_bench", "lmarena-ai/vision-arena-bench-v0.1", [*CHAT, "--enable-multimodal-chat", "--hf-output-len", "3"]),
        ("mmvu", "mmvu", "yale-nlp/MMVU", CHAT),
        ("llava", "llava", "lmms-lab/LLaVA-OneVision-Data", [*CHAT, "--hf-split", "train"]),
        ("llava-fixed", "llava", "lmms-lab/LLaVA-OneVision-Data", [*CHAT, "--hf-split", "train", "--hf-output-len", "2"]),
        ("instruct-coder", "instruct_coder", "likaixin/InstructCoder", ["--num-prompts", "2"]),
        ("zeta", "zeta", "zed-industries/zeta", ["--hf-output-len", "9"]),
        ("edits", "edits", "vdaita/edit_5k_char", ["--blazedit-min-distance", "0.2", "--blazedit-max-distance", "0.6", "--no-oversample"]),
        ("librispeech", "librispeech", "openslr/librispeech_asr", SPEECH),
        ("tiny-earnings", "librispeech", "D4nt3/esb-datasets-earnings22-validation-tiny-filtered", [*SPEECH, "--hf-output-len", "7"]),
        ("earnings", "earnings", "ArtificialAnalysis/Earnings22-Cleaned-AA", [*SPEECH, "--hf-split", "test"]),
        ("voxpopuli", "voxpopuli", "facebook/voxpopuli", [*SPEECH, "--asr-min-audio-len-sec", "0.2"]),
        ("ami", "ami", "edinburghcstr/ami", [*SPEECH, "--asr-min-audio-len-sec", "0.2", "--asr-max-audio-len-sec", "0.3"]),
        ("bfcl-in-order", "bfcl", "gorilla-llm/Berkeley-Function-Calling-Leaderboard", CHAT),
    ):
        yield f"hf/tiny-llama/{name}", "tiny-llama", hub(folder, id, "--disable-shuffle", *more)


def offline(loaded):
    """Has the module `loaded`, that of the tool's datasets, take copies for what it would fetch."""
    folders = {"yale-nlp/MMVU": "mmvu", "ArtificialAnalysis/Earnings22-Cleaned-AA": "earnings"}

    class Copies:
        def snapshot_download(self, name, **_):
            return str(COPIES / folders[name])

        def hf_hub_download(self, path, file, **_):
            return str(Path(path) / file)

    loaded.hf_api = Copies
    # It is known by its path alone.
    loaded.BlazeditDataset.SUPPORTED_DATASET_PATHS.add(str(COPIES / "edits"))


# ---------------------------------------------------------------- what is kept


def kept(value):
    """Media by what does not depend on an encoder: pictures and videos by their size, sound by its samples."""
    if isinstance(value, dict):
        if value.get("type") == "input_audio":
            file = base64.b64decode(value["input_audio"]["data"])
            return {**value, "input_audio": {**value["input_audio"], "data": sound(file)}}
        return {key: kept(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kept(item) for item in value]
    if isinstance(value, str) and value.startswith("data:image/jpeg;base64,"):
        from PIL import Image

        picture = Image.open(io.BytesIO(base64.b64decode(value.split(",", 1)[1])))
        return "data:image/jpeg;{}x{}".format(*picture.size)
    if isinstance(value, str) and value.startswith("data:video/mp4;base64,"):
        import cv2

        with tempfile.NamedTemporaryFile(suffix=".mp4") as file:
            file.write(base64.b64decode(value.split(",", 1)[1]))
            file.flush()
            film = cv2.VideoCapture(file.name)
            of = {name: round(film.get(getattr(cv2, f"CAP_PROP_{name}"))) for name in ("FRAME_WIDTH", "FRAME_HEIGHT", "FRAME_COUNT", "FPS")}
        return "data:video/mp4;{FRAME_WIDTH}x{FRAME_HEIGHT},{FRAME_COUNT} at {FPS}".format(**of)
    return value


def sound(file):
    import soundfile

    of = soundfile.info(io.BytesIO(file))
    return {"seconds": of.duration, "sha256": hashlib.sha256(file).hexdigest()}


def form(kind, raw):
    """The fields of a form, by name; of its file name, length and hash."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    fields = []
    for part in email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + raw).iter_parts():
        field, value = {"name": part.get_param("name", header="content-disposition")}, part.get_payload(decode=True)
        named = part.get_filename() is not None
        fields.append({**field, "filename": part.get_filename(), **sound(value)} if named else {**field, "value": value.decode()})
    return fields


def held(name, prompt):
    """Of a prompt with words of the tool's own, the texts of its row; of any other prompt all of it."""
    worded = WORDED.get(name.split("/")[2])
    if worded is None:
        return prompt
    folder, columns = worded
    for line in (COPIES / folder / "train.jsonl").read_text().splitlines():
        row = json.loads(line)
        texts = [row[column] for column in columns]
        if all(text in prompt for text in texts):
            return {"holds": texts}
    raise AssertionError((name, prompt))


# ---------------------------------------------------------------- fixtures

WORDS = "amber birch cedar drift ember fjord grove hazel inlet jetty lumen maple north ocean pearl".split()


def text(seed, count):
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(count)).capitalize()


def picture(seed, width, height, mode="RGB", format="PNG"):
    from PIL import Image

    draw, bands = random.Random(seed), len(mode)
    image = Image.frombytes(mode, (width, height), bytes([40 * draw.randrange(6) for _ in range(bands)]) * (width * height))
    with io.BytesIO() as file:
        image.save(file, format=format)
        return {"bytes": file.getvalue(), "path": None}


def tone(seconds, rate=8000, channels=1, format="WAV"):
    import numpy
    import soundfile

    samples = numpy.sin(numpy.arange(int(seconds * rate)) / 7) / 3
    with io.BytesIO() as file:
        soundfile.write(file, samples if channels == 1 else numpy.stack([samples] * channels, 1), rate, format=format)
        return file.getvalue()


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def table(path, rows, **features):
    import datasets

    path.parent.mkdir(parents=True, exist_ok=True)
    features = datasets.Features(features)
    datasets.Dataset.from_list(rows, features=features).to_parquet(path)


def write_pictures():
    from datasets import Image, List, Value

    turn = {"role": Value("string"), "content": Value("string")}
    for folder, column in (("vision_chat", "conversation"), ("vision_bench", "turns")):
        rows = []
        for number, (mode, format) in enumerate([("RGB", "PNG"), ("RGB", "JPEG"), ("L", "PNG"), ("RGBA", "PNG"), ("RGB", "PNG")]):
            talk = [[{"role": "user", "content": text(number, 3 + number) + "?"}, {"role": "assistant", "content": text(9 + number, 4)}]]
            images = [picture(number, 9 + number, 7, mode, format), picture(50, 3, 3)]
            rows.append({"id": number, column: talk, "images": images[: 1 + number % 2]})
        table(COPIES / folder / "train.parquet", rows, id=Value("int64"), **{column: List(List(turn)), "images": List(Image())})
    turn = {"from": Value("string"), "value": Value("string")}
    rows = []
    for number, (asked, told) in enumerate([(5, 6), (6, 0), (4, 1), (7, 9), (1500, 5), (5, 8), (6, 4)]):
        talk = [{"from": "human", "value": "<image>\n" + text(number, asked)}, {"from": "gpt", "value": text(70 + number, told or 1)}]
        rows.append({"id": str(number), "image": picture(number, 12, 5 + number), "conversations": talk[: 2 if told else 1]})
    table(COPIES / "llava/train.parquet", rows, id=Value("string"), image=Image(), conversations=List(turn))


def write_videos():
    root = "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main"
    letters = "ABCDE"
    choices = [
        {letter: text(10 + number, 1 + number) for number, letter in enumerate(letters)},
        {letter: "" for letter in letters},
        {letter: None for letter in letters},
        {letter: text(20 + number, 2) if letter < "C" else None for number, letter in enumerate(letters)},
    ]
    places = [f"{root}/videos/Art/1.mp4", "http://example.com/2.mp4", f"{root}/videos/Law/0.mp4", "videos/3.mp4"]
    rows = [{"id": str(k), "question": text(k, 5) + "?", "choices": choices[k], "video": places[k]} for k in range(4)]
    lines(COPIES / "mmvu/validation.jsonl", rows)
    talks = []
    media = [
        {"video": "https://videos.test/a.mp4"}, {"video": "clips/b.mp4"}, {"video": "/data/c.mp4", "image": ""},
        {"video": "clips/d.mp4", "image": "https://images.test/d.png"}, {}, {"video": "file:///data/f.mp4"},
    ]
    for number, found in enumerate(media):
        turns = [{"from": "human", "value": text(30 + number, 6)}, {"from": "gpt", "value": text(40 + number, 5 + number)}]
        talks.append({"id": f"v{number}", "conversations": turns, **found})
    (FIXTURES / "vllm_sharegpt_videos.json").write_text(json.dumps(talks, indent=1) + "\n")


def write_texts():
    lines(COPIES / "instruct_coder/train.jsonl", [
        {"input": f"def f{k}(x):\n    return x + {k}", "instruction": text(k, 4) + ".", "output": f"def f{k}(x): pass"} for k in range(3)
    ])
    start = "<|editable_region_start|>"
    lines(COPIES / "zeta/train.jsonl", [
        {"events": f"User edited `{k}.py`:\n- {text(k, 3)}", "input": f"{text(60 + k, 5)}\n{start}\n<|user_cursor_is_here|>", "output": out}
        for k, out in enumerate([f"{text(1, 9)}\n{start}\n{text(2, 4)}", f"{start}{text(3, 12)}", f"{text(4, 3)} {start} {start} {text(5, 2)}"])
    ])
    distances = [0.1, 0.2, 0.45, 0.7, 0.6, 0.61]
    lines(COPIES / "edits/train.jsonl", [
        {"code": f"a{k} = {k}\nprint(a{k})", "change_request": text(k, 5) + ".", "norm_distance": distance} for k, distance in enumerate(distances)
    ])


def write_calls():
    def function(name, kind="dict"):
        properties = {
            "area": {"type": "float", "description": text(7, 3)}, "sides": {"type": "tuple", "items": {"type": "any"}},
            "type": {"type": "string", "enum": ["dict", "float"]}, "größe": {"type": "integer", "default": 1.0},
        }
        return {"name": name, "description": f"<{name}> & 'more'", "parameters": {"type": kind, "properties": properties, "required": ["area"]}}

    def asked(*contents, role="user"):
        return [[{"role": role, "content": content} for content in contents], [{"role": "user", "content": "later"}]]

    lines(COPIES / "bfcl/BFCL_v3_simple.json", [
        {"id": "s0", "question": asked("How large is it?"), "function": [function("area")]},
        {"id": "s1", "question": asked("Be brief.", role="system"), "function": function("one", "object")},
        {"id": "s2", "question": asked("Nothing to call."), "function": []},
    ])
    lines(COPIES / "bfcl/BFCL_v3_live_simple.json", [
        {"id": "l0", "question": asked("Größe?", "Or weight?"), "function": [function("size"), function("weight", "any")]},
        {"id": "l1", "question": [[]], "function": [function("none")]},
    ])
    lines(COPIES / "bfcl/BFCL_v3_multiple.json", [
        {"id": "m0", "question": asked("One of them."), "function": [{"name": "bare", "parameters": None}]},
        {"id": "m1", "question": asked("No such role.", role="tester"), "function": [function("odd")]},
        {"id": "m2", "question": asked("A line\nmore."), "function": [function("two"), function("three")]},
    ])


def write_speech():
    from datasets import Audio, Value

    found = {"a.wav": tone(0.25), "b.flac": tone(0.5, 16000, format="FLAC"), "c.wav": tone(0.1), "d.ogg": tone(0.3, 16000, format="OGG")}
    media = COPIES / "earnings/media"
    media.mkdir(parents=True, exist_ok=True)
    for name, file in found.items():
        (media / name).write_bytes(file)
    lines(COPIES / "earnings/test.jsonl", [{"url": f"media/{name}", "transcript": text(k, 3)} for k, name in enumerate(found)])
    # Without it the folder would be one of sounds.
    note = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: test.jsonl\n---\n"
    (COPIES / "earnings/README.md").write_text(note)
    paths = [f"{HERE}/earnings/media/{name}" for name in found]
    lines(COPIES / "voxpopuli/train.jsonl", [{"audio": {"path": path, "bytes": None}, "raw_text": "x"} for path in paths])
    lines(COPIES / "ami/train.jsonl", [{"audio": path, "text": "x"} for path in paths])
    rows = [{"id": name, "audio": {"bytes": file, "path": name}} for name, file in found.items()]
    table(COPIES / "librispeech/train.parquet", rows, id=Value("string"), audio=Audio())
    lines(FIXTURES / "vllm_audio.jsonl", [
        {"prompt": "What is said?", "audio": paths[0], "output_tokens": 4},
        {"prompt": "Who speaks?", "audio": {"array": [0.0, 0.5, -0.5, 1.0, -1.0, 0.3333, 0.00002], "sampling_rate": 8000}, "output_tokens": 5},
        {"prompt": "Größe?", "audio": {"array": [[0.0, 0.25], [0.5, -0.75], [-1.0, 1.0]], "sampling_rate": 16000}, "output_tokens": 6},
        {"prompt": "How loud?", "audio": paths[1], "output_tokens": 7},
    ])


if __name__ == "__main__":
    for write in (write_pictures, write_videos, write_texts, write_calls, write_speech):
        write()
