"""Cases of `make_golden.py` for the data sets with pictures, and the fixtures that they need.

    VENV/bin/python tests/golden/pictures.py      writes the fixtures anew

A processor's folder holds a tokenizer of one token per byte, the special tokens of the kind of model, its settings and a
short chat template that puts pictures as the real one does."""

import base64
import hashlib
import io
import json
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
SEEDS = (1, 42, 2026)

# ---------------------------------------------------------------- fixtures

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'image' %}PICTURE{% elif 'text' in p %}{{ p['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As that of LLaVA 1.5, which says nothing of a content that is no list.
LLAVA = (
    "{% for m in messages %}{{ m['role'] | upper }}: {% for p in m['content'] | selectattr('type', 'equalto', 'image') %}<image>\n{% endfor %}"
    "{% for p in m['content'] | selectattr('type', 'equalto', 'text') %}{{ p['text'] }} {% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] | trim }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'image' %}<start_of_image>{% else %}{{ p['text'] | trim }}{% endif %}{% endfor %}"
    "{% endif %}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
QWEN = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
QWEN_TEMPLATE = CHATML.replace("PICTURE", "<|vision_start|><|image_pad|><|vision_end|>")


def processors():
    """(folder, special tokens, begin of sequence, tokenizer_config, other files)"""
    yield "qwen2-vl", QWEN, None, {"additional_special_tokens": QWEN}, {
        "config.json": {"model_type": "qwen2_vl"},
        "preprocessor_config.json": {
            "processor_class": "Qwen2VLProcessor", "image_processor_type": "Qwen2VLImageProcessor", "patch_size": 14, "merge_size": 2,
            "min_pixels": 3136, "max_pixels": 12845056,
        },
        "chat_template.json": {"chat_template": QWEN_TEMPLATE},
    }
    yield "qwen2.5-vl", QWEN, None, {"additional_special_tokens": QWEN[:2], "processor_class": "Qwen2_5_VLProcessor"}, {
        "config.json": {"model_type": "qwen2_5_vl"},
        "preprocessor_config.json": {"image_processor_type": "Qwen2VLImageProcessor", "size": {"shortest_edge": 6272, "longest_edge": 50176}},
        "chat_template.json": {"chat_template": QWEN_TEMPLATE},
    }
    yield "qwen3-vl", QWEN, None, {"extra_special_tokens": {"image_token": "<|image_pad|>"}}, {
        "config.json": {"model_type": "qwen3_vl"},
        "preprocessor_config.json": {
            "processor_class": "Qwen3VLProcessor", "image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
            "size": {"shortest_edge": 65536, "longest_edge": 16777216},
        },
        "chat_template.jinja": QWEN_TEMPLATE,
    }
    yield "llava", ["<s>", "<image>"], "<s>", {"bos_token": "<s>"}, {
        "config.json": {"model_type": "llava"},
        "preprocessor_config.json": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336}, "crop_size": 336},
        "processor_config.json": {
            "processor_class": "LlavaProcessor", "patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1,
        },
        "chat_template.jinja": LLAVA,
    }
    yield "llava-next", ["<s>", "<image>"], "<s>", {"bos_token": "<s>"}, {
        "config.json": {"model_type": "llava_next"},
        "preprocessor_config.json": {
            "image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336},
            "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
        },
        "processor_config.json": {
            "processor_class": "LlavaNextProcessor", "patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1,
        },
        "chat_template.jinja": CHATML.replace("PICTURE", "<image>\n"),
    }
    gemma = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    yield "gemma3", ["<bos>", "<start_of_turn>", "<end_of_turn>", *gemma.values()], "<bos>", {"bos_token": "<bos>", **gemma}, {
        "config.json": {"model_type": "gemma3"},
        "preprocessor_config.json": {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}},
        "processor_config.json": {"processor_class": "Gemma3Processor", "image_seq_length": 256},
        "chat_template.jinja": GEMMA,
    }
    intern = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>"}
    yield "internvl", ["<|im_start|>", "<|im_end|>", *intern.values()], None, intern, {
        "config.json": {"model_type": "internvl"},
        "preprocessor_config.json": {"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 112, "width": 112}, "max_patches": 12},
        "processor_config.json": {"processor_class": "InternVLProcessor", "image_seq_length": 16},
        "chat_template.jinja": CHATML.replace("PICTURE", "<IMG_CONTEXT>\n"),
    }
    pixtral = ["<s>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"]
    yield "pixtral", pixtral, "<s>", {"bos_token": "<s>"}, {
        "config.json": {"model_type": "llava"},
        "preprocessor_config.json": {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 512}, "patch_size": 16},
        "processor_config.json": {"processor_class": "PixtralProcessor", "patch_size": 16},
        "chat_template.jinja": (
            "{{ bos_token }}{% for m in messages %}[INST]{% if m['content'] is string %}{{ m['content'] }}{% else %}"
            "{% for p in m['content'] %}{% if p['type'] == 'image' %}[IMG]{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}[/INST]{% endfor %}"
        ),
    }


def make_processors():
    plain = json.loads((FIXTURES / "tokenizers/bytes/tokenizer.json").read_text())
    first = 1 + max(plain["model"]["vocab"].values())
    for name, specials, bos, config, files in processors():
        tokenizer = json.loads(json.dumps(plain))
        ids = {token: first + k for k, token in enumerate(specials)}
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        tokenizer["added_tokens"] = [{"id": k, "content": token, **flags} for token, k in ids.items()]
        if bos:
            tokenizer["post_processor"] = {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {bos: {"id": bos, "ids": [ids[bos]], "tokens": [bos]}},
            }
        folder = FIXTURES / "tokenizers" / name
        folder.mkdir(exist_ok=True)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1000000, **config}
        for file, value in {"tokenizer.json": tokenizer, "tokenizer_config.json": config, **files}.items():
            text = value if isinstance(value, str) else json.dumps(value)
            (folder / file).write_text(text)


def small_picture(mode, size, kind, number):
    """The bytes of a picture whose pixels depend on `number`."""
    from PIL import Image

    image = Image.new("RGBA", size)
    image.putdata([((x * 37 + number * 91) % 256, (y * 53 + number) % 256, (x * y) % 256, (x + 2 * y) * 7 % 256) for y in range(size[1]) for x in range(size[0])])
    buffer = io.BytesIO()
    (image if mode == "RGBA" else image.convert("RGB").convert(mode)).save(buffer, format=kind)
    return buffer.getvalue()


def mmmu_rows():
    """(question, picture)"""
    for number, (mode, size, kind) in enumerate((
        ("RGB", (31, 17), "PNG"), ("RGBA", (16, 24), "PNG"), ("P", (40, 12), "PNG"), ("L", (20, 20), "PNG"), ("RGB", (48, 32), "JPEG"),
        ("1", (64, 8), "PNG"), ("L", (24, 24), "JPEG"), ("RGB", (96, 64), "PNG"), ("RGBA", (9, 33), "PNG"), ("CMYK", (16, 16), "JPEG"),
    )):
        yield f"What is <image 1> number {number}? Größe: {size}", small_picture(mode, size, kind, number)
    yield "A question without a picture", None


def make_mmmu():
    import pyarrow
    import pyarrow.parquet

    rows = [{"id": f"test_Math_{k}", "question": question, "image_1": picture and {"bytes": picture, "path": f"{k}.png"}} for k, (question, picture) in enumerate(mmmu_rows())]
    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    schema = pyarrow.schema([("id", pyarrow.string()), ("question", pyarrow.string()), ("image_1", picture)])
    features = {"info": {"features": {"id": {"dtype": "string", "_type": "Value"}, "question": {"dtype": "string", "_type": "Value"}, "image_1": {"_type": "Image"}}}}
    schema = schema.with_metadata({"huggingface": json.dumps(features)})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), FIXTURES / "mmmu_small.parquet", compression="snappy")
    lines = [{**row, "image_1": row["image_1"] and base64.b64encode(row["image_1"]["bytes"]).decode()} for row in rows]
    (FIXTURES / "mmmu_small.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# ---------------------------------------------------------------- images.json


def command(dataset, seed, flags, backend, count):
    return [
        "--backend", backend, "--model", "{TOKENIZER}", "--tokenizer", "{TOKENIZER}", "--ready-check-timeout-sec", "0", "--base-url", "{URL}",
        "--dataset-name", dataset, "--num-prompts", str(count), "--seed", str(seed), *flags,
    ]


MODELS = ("qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava", "llava-next", "gemma3", "internvl", "pixtral")


def image_cases():
    """(name, tokenizer, backend, data set, flags, seeds)"""
    small = ["--random-input-len", "12", "--random-output-len", "9"]
    noise = [*small, "--image-format", "png", "--image-resolution", "random:20x30-90x140"]
    for model in MODELS:
        for backend in ("sglang", "sglang-oai-chat"):
            yield f"{model}/{backend}", model, backend, "image", noise, SEEDS
        yield f"{model}/many", model, "sglang-native", "image", [*noise, "--image-count", "3", "--random-image-count", "--random-range-ratio", "0.5"], (42,)
        for size in ("1080x1920", "90x1000", "1000x90", "56x56", "9x9"):
            yield f"{model}/{size}", model, "vllm-chat", "image", [*small, "--num-prompts", "1", "--image-content", "blank", "--image-resolution", size], (42,)
        yield f"{model}/mmmu", model, "sglang", "mmmu", ["--dataset-path", "{FIXTURES}/mmmu_small.parquet", "--random-output-len", "33"], (42,)
    for preset in ("4k", "1080p", "720p", "360p"):
        yield f"blank/{preset}", "qwen2.5-vl", "lmdeploy-chat", "image", [*small, "--num-prompts", "2", "--image-content", "blank", "--image-resolution", preset], (42,)
    yield "jpeg", "qwen2.5-vl", "sglang", "image", [*small, "--image-resolution", "64x48", "--image-count", "2"], SEEDS
    yield "jpeg/blank", "qwen2.5-vl", "sglang", "image", [*small, "--image-resolution", "random:8x8-360p", "--image-content", "blank"], (42,)
    yield "no-text", "qwen2.5-vl", "sglang", "image", ["--random-input-len", "0", "--random-output-len", "0", "--image-format", "png", "--image-resolution", "16X16"], (42,)
    for seed in SEEDS:
        yield f"mmmu/few/seed-{seed}", "qwen2.5-vl", "sglang-oai-chat", "mmmu", ["--dataset-path", "{FIXTURES}/mmmu_small.parquet", "--num-prompts", "3"], (seed,)
    yield "mmmu/all", "qwen2.5-vl", "sglang", "mmmu", ["--dataset-path", "{FIXTURES}/mmmu_small.parquet", "--num-prompts", "1000"], (42,)


def picture_of(uri):
    """What there is in a data URI: the same pixels may have other bytes, but in JPEG even those are others."""
    from PIL import Image

    head, _, data = uri.partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    got = {"head": head, "width": image.width, "height": image.height}
    if head == "data:image/png;base64":
        got["rgb_sha256"] = hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
    else:
        got["bytes"] = len(base64.b64decode(data))
    return got


def image_row(row):
    return {
        "text_prompt_len": int(row.text_prompt_len), "vision_prompt_len": int(row.vision_prompt_len),
        "pictures": [picture_of(uri) for uri in row.image_data],
    }


def from_file(path, *_, **__):
    """In place of `load_dataset`, which would ask the hub."""
    import datasets

    return lambda *_, **__: datasets.Dataset.from_parquet(str(path))


def make_images(reference):
    from sglang.benchmark.datasets import mmmu

    mmmu.load_dataset = from_file(reference.fixtures / "mmmu_small.parquet")
    cases = []
    for name, tokenizer, backend, dataset, flags, seeds in image_cases():
        for seed in seeds:
            argv = command(dataset, seed, flags, backend, 4)
            got = reference.dataset(argv, tokenizer, image_row)
            full = name if len(seeds) == 1 else f"{name}/seed-{seed}"
            cases.append({"name": full, "tokenizer": tokenizer, "argv": argv, **got})
    return {"cases": cases}, 4


def shown(value):
    """A body with the length of each data URI in its place."""
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shown(v) for v in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        return picture_of(value)
    return value


def make_picture_payloads(reference):
    """Whole runs: how pictures go into the bodies."""
    cases = []
    for backend in ("sglang", "sglang-native", "sglang-oai-chat", "vllm-chat", "lmdeploy-chat"):
        for name, extra in (("plain", []), ("extra-body", ["--extra-request-body", '{"image_data":"mine","top_p":0.5}'])):
            flags = ["--random-input-len", "9", "--random-output-len", "4", "--image-format", "png", "--image-resolution", "20x30", "--image-count", "2"]
            run = ["--warmup-requests", "0", "--max-concurrency", "1", "--disable-tqdm", "--output-file", "{DIR}/result.jsonl"]
            argv = command("image", 42, [*run, *flags, *extra], backend, 2)
            reference.server.reset(gap_ms=0)
            status, text = reference.run(argv, "qwen2.5-vl")
            assert status == 0, (status, text, (reference.scratch / "stderr").read_text())
            bodies = [shown(entry["body"]) for entry in reference.server.log() if entry["path"].endswith(("/generate", "completions"))]
            table = [line for line in text.splitlines() if line.startswith("Total input")]
            result = json.loads((reference.scratch / "result.jsonl").read_text().splitlines()[-1])
            kept = {key: result[key] for key in ("total_input_tokens", "total_input_text_tokens", "total_input_vision_tokens")}
            cases.append({"name": f"{backend}/{name}", "tokenizer": "qwen2.5-vl", "argv": argv, "bodies": reference.clean(bodies, "qwen2.5-vl"), "table": table, "line": kept})
    return {"cases": cases}, 4


MAKERS = {"images": make_images, "picture_payloads": make_picture_payloads}

if __name__ == "__main__":
    make_processors()
    make_mmmu()
